import { LIVE_RUN_STATUSES } from '../../runs/state.ts'
import { type Api, ApiFailure } from './api.ts'
import { childrenPanel } from './children.ts'
import type { Directory } from './directory.ts'
import { h, setText, textBlock } from './dom.ts'
import { eventsPanel } from './events.ts'
import { count, shortId, words } from './format.ts'
import { pretty } from './json.ts'
import { hrefOf, type PendingPause } from './pause.ts'
import { durationOf, type Run } from './run.ts'
import { tasksPanel } from './tasks.ts'

export interface RunDetailDeps {
  readonly api: Api
  readonly directory: Directory
}

/** One run: status, input and output, tasks and events. Refreshes while the run is active. */
export function runDetail({ api, directory }: RunDetailDeps) {
  const element = h('article', { class: 'panel detail', 'aria-label': 'Run' })
  const nothing = h('p', { class: 'empty' }, 'Choose a run to see its tasks and events.')
  let shown: OpenRun | null = null
  element.append(nothing)

  return {
    element,
    open(runId: string | null): void {
      if (runId === (shown?.runId ?? null)) return
      shown = runId === null ? null : openRun(runId, { api, directory })
      element.replaceChildren(shown?.element ?? nothing)
    },
    focus: () => shown?.heading.focus(),
    refresh: async () => shown?.refresh(),
  }
}

type OpenRun = ReturnType<typeof openRun>

function openRun(runId: string, { api, directory }: RunDetailDeps) {
  const heading = h('h2', { tabindex: '-1' }, 'Run')
  const status = h('span')
  const facts = h('dl', { class: 'facts' })
  const waits = waitsNotice()
  const problem = h('p', { class: 'problem', role: 'alert' })
  const identity = h('code', { class: 'identity' }, runId)
  const bodies = {
    input: textBlock('Input'),
    output: textBlock('Output'),
    error_detail: textBlock('Error detail'),
    metadata: textBlock('Metadata'),
  }
  const children = childrenPanel({ api, directory, runId })
  const tasks = tasksPanel({ api, runId })
  const events = eventsPanel({ api, runId })
  /** The `event_count` of the run up to which its events have been loaded. */
  let eventsSeen = -1
  let wasLive = true

  function show(run: Run): void {
    setText(heading, directory.nameOf(run.agent_id))
    setText(status, words(run.status))
    status.className = `status ${run.status}`
    showFacts(facts, run)
    setText(problem, run.error_message ?? '')
    waits.show(run)
    bodies.input.show(pretty(run.input))
    bodies.output.show(run.output === null ? 'none reported' : pretty(run.output))
    for (const name of ['error_detail', 'metadata'] as const) {
      const text = pretty(run[name] ?? {})
      bodies[name].element.hidden = text === '{}'
      bodies[name].show(text)
    }
  }

  return {
    runId,
    heading,
    element: h(
      'div',
      {},
      h('a', { href: '#/runs', class: 'back' }, '← All runs'),
      h('div', { class: 'title' }, heading, status, identity),
      problem,
      waits.element,
      facts,
      h('div', { class: 'bodies' }, ...Object.values(bodies).map(({ element }) => element)),
      children.element,
      tasks.element,
      events.element,
    ),
    async refresh(): Promise<void> {
      const run = await find(api, runId)
      if (run === null) {
        setText(heading, 'No such run')
        setText(problem, 'This workspace has no run with this id.')
        return
      }
      show(run)
      const isLive = LIVE_RUN_STATUSES.includes(run.status)
      // One more refresh after its end, and another one whenever late events have been counted.
      const hasNews = isLive || wasLive || run.event_count !== eventsSeen
      if (hasNews) await Promise.all([children.refresh(), tasks.refresh(run), events.refresh()])
      wasLive = isLive
      eventsSeen = run.event_count
    },
  }
}

/** Null if the run does not exist in this workspace: links are shared and may be outdated. */
async function find(api: Api, runId: string): Promise<Run | null> {
  try {
    return await api.get<Run>(`/api/v1/runs/${runId}`)
  } catch (error) {
    if (error instanceof ApiFailure && error.code === 'NOT_FOUND') return null
    throw error
  }
}

/** What a hosted run waits for, with a link to decide it. */
function waitsNotice() {
  const what = h('span')
  const link = h('a')
  const element = h('p', { class: 'waits' }, what, link)
  return {
    element,
    show({ run_id, pending }: Run): void {
      const pause = pending as PendingPause | null
      element.hidden = pause === null
      if (pause === null) return
      const who = pause.run_id === run_id ? 'It waits' : `Its child run ${shortId(pause.run_id)} waits`
      const isApproval = pause.type === 'approval'
      setText(
        what,
        isApproval ? `${who} for an approval to call ${pause.tool}. ` : `${who} for an answer: ${pause.question} `,
      )
      setText(link, isApproval ? 'Review' : 'Answer')
      link.href = hrefOf(isApproval ? 'approvals' : 'input-requests', pause.id)
    },
  }
}

function showFacts(list: HTMLElement, run: Run): void {
  const { input_tokens: tokensIn, output_tokens: tokensOut } = run.usage
  const facts: readonly (readonly [name: string, text: string | null, href?: string])[] = [
    ['Duration', durationOf(run)],
    ['Created', moment(run.created_at)],
    ['Completed', run.completed_at === null ? null : moment(run.completed_at)],
    ['Trigger', run.trigger_type],
    ['Agent version', String(run.agent_version)],
    ['Events', count(run.event_count)],
    ['Tokens', tokensIn + tokensOut === 0 ? null : `${count(tokensIn)} in, ${count(tokensOut)} out`],
    ['Cost', run.cost_usd === 0 ? null : `$${run.cost_usd}`],
    ['External id', run.external_run_id],
    ['Parent', run.parent_run_id && shortId(run.parent_run_id), `#/runs/${run.parent_run_id}`],
    ['Tags', run.tags.length === 0 ? null : run.tags.join(', ')],
  ]
  const known = facts.filter(([, text]) => text !== null)
  // Rebuilt only if a fact was added or removed; otherwise texts are updated in place, so that they stay selectable.
  const names = known.map(([name]) => name).join()
  if (list.dataset.names !== names) {
    list.dataset.names = names
    list.replaceChildren(...known.map(([name, , href]) => h('div', {}, h('dt', {}, name), fact(href))))
  }
  const values = list.querySelectorAll('dd > *')
  known.forEach(([, text], index) => {
    const value = values[index]
    if (value !== undefined) setText(value, text ?? '')
  })
}

function fact(href: string | undefined): HTMLElement {
  return h('dd', {}, href === undefined ? h('span') : h('a', { href }))
}

function moment(timestamp: string): string {
  return new Date(timestamp).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
}
