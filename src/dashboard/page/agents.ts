import type { Api } from './api.ts'
import type { Agent, Directory } from './directory.ts'
import { h, keyedList, type Part, setText } from './dom.ts'
import { ago } from './format.ts'
import { noAgentsYet } from './hints.ts'
import { invokePanel } from './invoke.ts'

export interface AgentsViewDeps {
  readonly api: Api
  readonly directory: Directory
  readonly signal: AbortSignal
  /** Shows the runs of one agent. */
  readonly showRuns: (agentId: string) => void
}

/** The agents of the workspace, and a form to invoke hosted ones. */
export function agentsView({ api, directory, signal, showRuns }: AgentsViewDeps) {
  const invoke = invokePanel({ api, signal })
  const body = h('tbody')
  const table = h(
    'table',
    {},
    h('thead', {}, h('tr', {}, ...['Agent', 'Type', 'Status', 'Version', 'Created', ''].map(columnHead))),
    body,
  )
  const empty = noAgentsYet()
  const more = h('p', { class: 'hint' })
  const show = keyedList<Agent>(
    body,
    ({ agent_id }) => agent_id,
    (agent) => agentRow(agent, showRuns, invoke.open),
  )
  return {
    element: h(
      'section',
      { class: 'agents', 'aria-label': 'Agents' },
      invoke.element,
      h('div', { class: 'panel' }, table, more, empty),
    ),
    async refresh(): Promise<void> {
      await directory.refresh()
      const { agents, isPartial } = directory
      show(agents)
      table.hidden = agents.length === 0
      empty.hidden = agents.length > 0
      setText(more, isPartial ? `The newest ${agents.length}. GET /api/v1/agents lists the others.` : '')
    },
  }
}

function agentRow(first: Agent, showRuns: AgentsViewDeps['showRuns'], openInvoke: (agent: Agent) => void): Part<Agent> {
  const { agent_id, created_at } = first
  let shown = first
  const name = h('a', { href: '#/runs', title: `Runs of agent ${agent_id}` })
  name.addEventListener('click', () => showRuns(agent_id))
  const type = h('td')
  const status = h('span')
  const version = h('td')
  const created = h('time', { datetime: created_at, title: created_at })
  const invoke = h('button', { type: 'button', class: 'quiet' }, 'Invoke')
  invoke.addEventListener('click', () => openInvoke(shown))
  return {
    element: h(
      'tr',
      {},
      h('td', {}, name),
      type,
      h('td', {}, status),
      version,
      h('td', {}, created),
      h('td', {}, invoke),
    ),
    update(agent) {
      shown = agent
      invoke.hidden = agent.runtime_type !== 'hosted'
      invoke.disabled = agent.status === 'paused'
      setText(name, agent.name)
      setText(type, agent.runtime_type)
      setText(status, agent.status)
      status.className = `status ${agent.status}`
      setText(version, String(agent.version))
      setText(created, ago(agent.created_at, Date.now()))
    },
  }
}

function columnHead(title: string): HTMLElement {
  return h('th', { scope: 'col' }, title)
}
