import { answerForm } from './answer-form.ts'
import type { Api } from './api.ts'
import { approvalForm } from './approval-form.ts'
import type { Decide } from './decide.ts'
import type { Directory } from './directory.ts'
import { h, type Part, setText, textBlock } from './dom.ts'
import { ago, ahead, shortId } from './format.ts'
import { plain } from './json.ts'
import { type Pause, readPause } from './pause.ts'

export interface PauseCardDeps {
  readonly api: Api
  readonly directory: Directory
  /** Called when the user starts to work on it. */
  readonly onTouched: (pause: Pause) => void
  /** Called with the stored decision, whoever made it. */
  readonly onDecided: (pause: Pause) => void
}

/** One pending approval or question: its subject, its run, and the decision or a form for it. */
export function pauseCard(
  first: Pause,
  { api, directory, onTouched, onDecided }: PauseCardDeps,
): Part<Pause> & { focus(): void } {
  const { kind, id, run_id, root_run_id, created_at, expires_at } = first
  const heading = h('h2', { tabindex: '-1' })
  const status = h('span')
  const asked = h('time', { datetime: created_at, title: created_at })
  const expires = h('time', expires_at === null ? {} : { datetime: expires_at, title: expires_at })
  const problem = h('p', { class: 'problem', role: 'alert' })
  const verdict = h('p', { class: 'verdict', role: 'status' })
  const changed = textBlock('Called with')
  const form = h('fieldset', {}, first.kind === 'approvals' ? approvalForm(first, decide) : answerForm(first, decide))
  let shown = first
  form.addEventListener('input', () => onTouched(shown))

  function decide(...[action, body]: Parameters<Decide>): void {
    void send(action, body)
  }

  async function send(action: string, body: object): Promise<void> {
    onTouched(shown)
    form.disabled = true
    setText(problem, '')
    try {
      // In the background: the run may continue for a long time, and its page shows the progress.
      await api.post(`/api/v1/${kind}/${id}/${action}`, { ...body, background: true })
    } catch (error) {
      // For example, someone else has decided already.
      setText(problem, (error as Error).message)
    }
    try {
      const stored = await readPause(api, kind, id)
      if (stored !== null) update(stored)
      if (stored !== null && stored.status !== 'pending') onDecided(stored)
    } catch {
      // The next refresh reads it again.
    } finally {
      form.disabled = false
    }
  }

  function update(pause: Pause): void {
    // A response sent before the decision.
    if (pause.status === 'pending' && shown.status !== 'pending') return
    shown = pause
    const isOpen = pause.status === 'pending'
    setText(heading, directory.nameOf(pause.agent_id))
    setText(status, isOpen ? (pause.kind === 'approvals' ? 'approval' : 'question') : pause.status)
    status.className = `status ${CLASS_OF[pause.status]}`
    setText(asked, `asked ${ago(pause.created_at, Date.now())}`)
    setText(expires, isOpen && expires_at !== null ? `expires ${ahead(expires_at, Date.now())}` : '')
    setText(verdict, isOpen ? '' : verdictOn(pause))
    form.hidden = !isOpen
    const edited = pause.kind === 'approvals' ? pause.edited_input : null
    changed.element.hidden = edited === null
    if (edited !== null) changed.show(plain(edited))
  }

  const run = h('a', { href: `#/runs/${run_id}` }, `run ${shortId(run_id)}`)
  const below =
    run_id === root_run_id ? [] : [h('a', { href: `#/runs/${root_run_id}` }, `child of ${shortId(root_run_id)}`)]
  const card = h('article', {}, h('div', { class: 'title' }, heading, status, run, ...below, asked, expires))
  card.append(...question(first), problem, verdict, changed.element, form)
  return {
    element: h('li', { class: 'panel' }, card),
    update,
    focus() {
      card.scrollIntoView({ block: 'nearest' })
      heading.focus()
    },
  }
}

const CLASS_OF = {
  pending: 'awaiting_input',
  approved: 'completed',
  answered: 'completed',
  rejected: 'failed',
  expired: 'timed_out',
  cancelled: 'cancelled',
}

/** The full subject of the decision: exactly the call that will be made if it is approved. */
function question(pause: Pause): Node[] {
  if (pause.kind === 'input-requests') return [h('p', { class: 'question' }, pause.question)]
  const input = textBlock('Arguments')
  input.show(plain(pause.input))
  return [h('p', {}, 'wants to call ', h('code', { class: 'name' }, pause.tool)), input.element]
}

function verdictOn(pause: Pause): string {
  const { status, decided_at, decided_by } = pause
  if (status === 'expired') return 'Expired: no decision in time.'
  if (status === 'cancelled') return 'Cancelled: its run has ended.'
  const when = decided_at === null ? '' : ` ${ago(decided_at, Date.now())}`
  const who = decided_by === null ? '' : `, with key ${shortId(decided_by)}`
  const said = pause.kind === 'approvals' ? pause.comment : pause.answer
  return `${status.charAt(0).toUpperCase()}${status.slice(1)}${when}${who}${said === null ? '.' : `: ${said}`}`
}
