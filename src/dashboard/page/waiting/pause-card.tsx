import { useEffect, useRef, useState } from 'preact/hooks'
import { hrefOfRun } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { plain } from '../data/json.ts'
import { failureOf } from '../data/loading.ts'
import { type Pause, readPause } from '../data/waiting.ts'
import { Json } from '../parts/code.tsx'
import { Icon } from '../parts/controls.tsx'
import { Status } from '../parts/states.tsx'
import { Ago, Ahead, ago, useNow } from '../parts/time.tsx'
import { AnswerForm } from './answer-form.tsx'
import { ApprovalForm } from './approval-form.tsx'
import type { Decide } from './decision.ts'
import { Diff } from './diff.tsx'
import { useKeyNames } from './key-names.ts'

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
        {isOpen ? (
          <Status name="awaiting_input" text={isApproval ? 'approval' : 'question'} />
        ) : (
          <Status name={pause.status} />
        )}
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
          <ApprovalForm approval={pause} decide={decide} isBusy={isBusy} />
        ) : (
          <AnswerForm request={pause} decide={decide} isBusy={isBusy} />
        ))}
    </article>
  )
}

function useDecide(pause: Pause) {
  const { api, waiting } = useSession()
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState('')
  const send = async (...[action, body]: Parameters<Decide>) => {
    waiting.watch(pause)
    setBusy(true)
    setProblem('')
    try {
      // In the background: the run may continue for a long time, and its page shows the progress.
      await api.post(`/api/v1/${pause.kind}/${pause.id}/${action}`, { ...body, background: true })
    } catch (error) {
      // For example, someone else has decided already.
      setProblem(failureOf(error).message)
    }
    try {
      const stored = await readPause(api, pause.kind, pause.id)
      if (stored !== null) waiting.watch(stored)
    } catch {
      // The next refresh reads it again.
    } finally {
      setBusy(false)
    }
  }
  const decide: Decide = (action, body) => void send(action, body)
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
  const edited = pause.kind === 'approvals' ? pause.edited_input : null
  return (
    <>
      <p class="verdict" role="status">
        {text}
      </p>
      {pause.kind === 'approvals' && edited !== null && (
        <>
          <Diff before={plain(pause.input)} after={plain(edited)} />
          <Json title="Called with" value={edited} isExact />
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
  const said = pause.kind === 'approvals' ? pause.comment : pause.answer
  return `${status.charAt(0).toUpperCase()}${status.slice(1)}${when}${who}${said === null ? '.' : `: ${said}`}`
}
