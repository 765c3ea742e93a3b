import { useEffect, useRef, useState } from 'preact/hooks'
import { useKeyNames } from '../context/key-names.ts'
import { hrefOf, hrefOfRun } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { plain } from '../data/json.ts'
import { type Loading, useAttempt, useLoad } from '../data/loading.ts'
import type { Action, NamedPause, Pause } from '../data/waiting.ts'
import { Json } from '../parts/code.tsx'
import { Icon, Id } from '../parts/controls.tsx'
import { Diff } from '../parts/diff.tsx'
import { SessionLink, UserLink } from '../parts/links.tsx'
import { Markdown } from '../parts/markdown.tsx'
import { Scrollable } from '../parts/scrollable.tsx'
import { Facts, Loaded, ProblemText, Status } from '../parts/states.tsx'
import { Ago, Ahead, ago, Moment, useNow } from '../parts/time.tsx'
import { AnswerForm, ApprovalForm } from './decision.tsx'

interface NamedPauseProps extends NamedPause {
  /** A new value makes the card read the pause again. */
  readonly stamp?: string | undefined
}

/** An approval or question on the page of its run, or where an agent is tried: the page around it says who asks. */
export function NamedPauseCard(named: NamedPauseProps) {
  const pause = usePause(named).data
  if (!pause) return null
  const isOpen = pause.status === 'pending'
  return (
    <article class={`panel pause ${isOpen ? 'is-open' : ''}`}>
      <div class="detail-head">
        <Icon name="person" />
        <Subject pause={pause} />
        {isOpen && <Status name="awaiting_input" text={pause.kind === 'approvals' ? 'approval' : 'question'} />}
        {!isOpen && <Status name={pause.status} />}
        <Ago at={pause.created_at} prefix="asked " />
        {isOpen && pause.expires_at !== null && <Ahead at={pause.expires_at} prefix="expires " />}
      </div>
      <Question pause={pause} />
      <Decision pause={pause} />
    </article>
  )
}

interface OpenPauseProps extends NamedPauseProps {
  /** Called when all of it is shown. */
  readonly onShown: (card: HTMLElement) => void
  /** A note above the card, such as why it is shown. */
  readonly note?: string
}

/** An approval or question in the list, with all that a person needs to decide it. */
export function OpenPause({ onShown, note, ...named }: OpenPauseProps) {
  const read = usePause(named)
  const card = useRef<HTMLElement>(null)
  const isShown = Boolean(read.data)
  useEffect(() => {
    if (isShown && card.current !== null) onShown(card.current)
  }, [isShown])
  return (
    <Loaded read={read} lines={6}>
      {(pause) =>
        pause === null ? (
          <p role="status">This approval or question is not in this workspace.</p>
        ) : (
          <article ref={card} class={`pause ${pause.status === 'pending' ? 'is-open' : ''}`} aria-current="true">
            {note !== undefined && <p class="named-note">{note}</p>}
            <div class="detail-head">
              <Subject pause={pause} />
              {pause.status !== 'pending' && <Status name={pause.status} />}
            </div>
            <PauseFacts pause={pause} />
            <SaidBefore pause={pause} />
            <Question pause={pause} />
            <Decision pause={pause} />
          </article>
        )
      }
    </Loaded>
  )
}

/** The pause as it was last read. Null: it does not exist. Undefined: not read yet. */
function usePause({ kind, id, stamp }: NamedPauseProps): Loading<Pause | null> {
  const { waiting } = useSession()
  const read = useLoad(() => waiting.read(kind, id), [kind, id, stamp], { subject: id })
  return { ...read, data: waiting.known.value.get(id) ?? read.data }
}

/** Says which agent wants what. It takes the focus when a link leads here. */
function Subject({ pause }: { readonly pause: Pause }) {
  const name = useSession().directory.nameOf(pause.agent_id)
  if (pause.kind === 'input-requests') return <h2 tabIndex={-1}>{name} asks</h2>
  return (
    <h2 tabIndex={-1}>
      {name} wants to call <code class="strong">{pause.tool}</code>
    </h2>
  )
}

function PauseFacts({ pause }: { readonly pause: Pause }) {
  const { directory } = useSession()
  const { run_id, root_run_id, agent_id, created_at, expires_at, context } = pause
  const { session_id, external_user_id: user } = context
  const link = (href: string, text: string) => <a href={href}>{text}</a>
  return (
    <Facts
      facts={[
        ['User', user && <UserLink key="user" id={user} />],
        ['Session', session_id && <SessionLink key="session" id={session_id} />],
        ['Run', link(hrefOfRun(run_id), `…${run_id.slice(-8)}`)],
        ['Child run of', run_id !== root_run_id && link(hrefOfRun(root_run_id), `…${root_run_id.slice(-8)}`)],
        ['Agent', link(hrefOf('agents', [agent_id]), directory.nameOf(agent_id))],
        ['Asked', <Moment key="asked" at={created_at} />],
        ['Expires', expires_at !== null && pause.status === 'pending' && <Ahead at={expires_at} />],
        ['Id', <Id key="id" id={pause.id} />],
      ]}
    />
  )
}

function SaidBefore({ pause: { run_id, root_run_id, context } }: { readonly pause: Pause }) {
  const { user_message, assistant_message } = context
  if (user_message === null && assistant_message === null) return null
  const said = [
    ['user', run_id === root_run_id ? 'user' : 'calling agent', user_message],
    ['assistant', 'assistant', assistant_message],
  ] as const
  return (
    <Scrollable as="ol" class="conversation said-before" label="What was said before">
      {said.map(
        ([side, role, text]) =>
          text !== null && (
            <li key={side} class={`message ${side}`}>
              <span class="role">{role}</span>
              <div class="message-body">
                <Markdown text={text} />
              </div>
            </li>
          ),
      )}
    </Scrollable>
  )
}

/** The full subject of the decision: exactly the call that will be made if it is approved. */
export function Question({ pause }: { readonly pause: Pause }) {
  if (pause.kind === 'input-requests') return <p class="question">{pause.question}</p>
  return <Json title="Arguments" value={pause.input} isExact />
}

/** The decision, or a form for it. */
function Decision({ pause }: { readonly pause: Pause }) {
  const { waiting } = useSession()
  const { problem, attempt } = useAttempt()
  const [isBusy, setBusy] = useState(false)
  const decide = async (action: Action, body: object) => {
    setBusy(true)
    await attempt(() => waiting.decide(pause, action, body))
    setBusy(false)
  }
  return (
    <>
      <ProblemText text={problem} />
      {pause.status !== 'pending' ? (
        <Verdict pause={pause} />
      ) : pause.kind === 'approvals' ? (
        <ApprovalForm input={pause.input} decide={decide} isBusy={isBusy} />
      ) : (
        <AnswerForm options={pause.options} decide={decide} isBusy={isBusy} />
      )}
    </>
  )
}

function Verdict({ pause }: { readonly pause: Pause }) {
  const text = useVerdict(pause)
  return (
    <>
      <p class="verdict" role="status">
        {text}
      </p>
      {pause.kind === 'approvals' && pause.edited_input !== null && (
        <>
          <Diff before={plain(pause.input)} after={plain(pause.edited_input)} />
          <Json title="Called with" value={pause.edited_input} isExact />
        </>
      )}
    </>
  )
}

function useVerdict(pause: Pause): string {
  const now = useNow()
  const who = useDecider()(pause)
  const { status, decided_at } = pause
  if (status === 'expired') return 'Expired: no decision in time.'
  if (status === 'cancelled') return 'Cancelled: its run has ended.'
  const when = decided_at === null ? '' : ` ${ago(decided_at, now)}`
  const reply = pause.kind === 'approvals' ? pause.comment : pause.answer
  const by = who === '' ? '' : ` by ${who}`
  return `${status.charAt(0).toUpperCase()}${status.slice(1)}${when}${by}${reply === null ? '.' : `: ${reply}`}`
}

/** The person who decided, or the name of the key. */
export function useDecider() {
  const keyName = useKeyNames()
  return ({ decided_by, decided_by_person }: Pick<Pause, 'decided_by' | 'decided_by_person'>) =>
    decided_by === null ? '' : (decided_by_person ?? keyName(decided_by))
}
