import { useEffect, useRef, useState } from 'preact/hooks'
import { hrefOfRun } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import type { Api, Listed } from '../data/api.ts'
import { plain } from '../data/json.ts'
import { useAttempt, useLoad } from '../data/loading.ts'
import { type Pause, readPause } from '../data/waiting.ts'
import { Json } from '../parts/code.tsx'
import { Icon } from '../parts/controls.tsx'
import { Status } from '../parts/states.tsx'
import { Ago, Ahead, ago, useNow } from '../parts/time.tsx'
import { AnswerForm, ApprovalForm, Diff } from './decision.tsx'

interface PauseCardProps {
  readonly pause: Pause
  /** The link names it: it is marked, comes into view, and gets the focus. */
  readonly isNamed?: boolean
  readonly isOnRunPage?: boolean
}

/** One pending approval or question: its subject, its run, and the decision or a form for it. */
export function PauseCard({ pause, isNamed = false, isOnRunPage = false }: PauseCardProps) {
  const { directory, waiting } = useSession()
  const { decide, isBusy, problem } = useDecide(pause)
  const card = useRef<HTMLElement>(null)
  useEffect(() => {
    if (!isNamed) return
    card.current?.scrollIntoView({ block: 'start' })
    card.current?.querySelector('h2')?.focus({ preventScroll: true })
  }, [isNamed])
  const isOpen = pause.status === 'pending'
  const isApproval = pause.kind === 'approvals'
  // What the user works on stays listed.
  const touched = () => isOpen && waiting.watch(pause)
  return (
    <article
      ref={card}
      class={`panel pause ${isOpen ? 'is-open' : ''}`}
      aria-current={isNamed ? 'true' : undefined}
      onInput={touched}
    >
      {isNamed && <p class="named-note">The one that the link is about</p>}
      <div class="detail-head">
        <Icon name="person" />
        <h2 tabIndex={-1}>{directory.nameOf(pause.agent_id)}</h2>
        {isOpen && <Status name="awaiting_input" text={isApproval ? 'approval' : 'question'} />}
        {!isOpen && <Status name={pause.status} />}
        {!isOnRunPage && <RunLinks pause={pause} />}
        <Ago at={pause.created_at} prefix="asked " />
        {isOpen && pause.expires_at !== null && <Ahead at={pause.expires_at} prefix="expires " />}
      </div>
      <Question pause={pause} />
      {problem !== '' && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {!isOpen && <Verdict pause={pause} />}
      {isOpen &&
        (isApproval ? (
          <ApprovalForm input={pause.input} decide={decide} isBusy={isBusy} />
        ) : (
          <AnswerForm options={pause.options} decide={decide} isBusy={isBusy} />
        ))}
    </article>
  )
}

function useDecide(pause: Pause) {
  const { api, waiting } = useSession()
  const { problem, attempt } = useAttempt()
  const [isBusy, setBusy] = useState(false)
  const decide = async (action: string, body: object) => {
    waiting.watch(pause)
    setBusy(true)
    // In the background: the run may continue for a long time, and its page shows the progress.
    await attempt(() => api.post(`/api/v1/${pause.kind}/${pause.id}/${action}`, { ...body, background: true }))
    // Someone else may have decided already. If this fails, the next refresh reads it again.
    const stored = await readPause(api, pause.kind, pause.id).catch(() => null)
    if (stored !== null) waiting.watch(stored)
    setBusy(false)
  }
  return { decide, isBusy, problem }
}

function RunLinks({ pause: { run_id, root_run_id } }: { readonly pause: Pause }) {
  return (
    <>
      <a href={hrefOfRun(run_id)}>run …{run_id.slice(-8)}</a>
      {run_id !== root_run_id && <a href={hrefOfRun(root_run_id)}>child of …{root_run_id.slice(-8)}</a>}
    </>
  )
}

/** The full subject of the decision: exactly the call that will be made if it is approved. */
function Question({ pause }: { readonly pause: Pause }) {
  if (pause.kind === 'input-requests') return <p class="question">{pause.question}</p>
  return (
    <>
      <p>
        wants to call <code class="strong">{pause.tool}</code>
      </p>
      <Json title="Arguments" value={pause.input} isExact />
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
  const keyName = useKeyNames()
  const { status, decided_at, decided_by } = pause
  if (status === 'expired') return 'Expired: no decision in time.'
  if (status === 'cancelled') return 'Cancelled: its run has ended.'
  const when = decided_at === null ? '' : ` ${ago(decided_at, now)}`
  const who = decided_by === null ? '' : ` by ${keyName(decided_by)}`
  const reply = pause.kind === 'approvals' ? pause.comment : pause.answer
  return `${status.charAt(0).toUpperCase()}${status.slice(1)}${when}${who}${reply === null ? '.' : `: ${reply}`}`
}

interface KeyName {
  readonly key_id: string
  readonly name: string | null
}

const KEYS_MAX = 200

const keysOf = new WeakMap<Api, Promise<readonly KeyName[]>>()

/** The name of a key by its id, for who decided. The keys are read once, when a name is first needed. */
function useKeyNames(): (keyId: string) => string {
  const { api } = useSession()
  const { data = [] } = useLoad(() => {
    const keys = keysOf.get(api) ?? readKeys(api)
    keysOf.set(api, keys)
    keys.catch(() => keysOf.delete(api))
    return keys
  }, [])
  return (keyId) => {
    const name = data.find(({ key_id }) => key_id === keyId)?.name
    return name ? `the key "${name}"` : `key …${keyId.slice(-8)}`
  }
}

/** A decision stays known by its key after that was revoked. */
async function readKeys(api: Api): Promise<readonly KeyName[]> {
  const read = (status?: string) => api.get<Listed<KeyName>>('/api/v1/keys', { limit: KEYS_MAX, status })
  return (await Promise.all([read(), read('revoked')])).flatMap(({ items }) => items)
}
