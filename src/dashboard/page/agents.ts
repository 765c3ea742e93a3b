import type { Agent, Directory } from './directory.ts'
import { h, keyedList, type Part, setText } from './dom.ts'
import { ago } from './format.ts'
import { noAgentsYet } from './hints.ts'

export interface AgentsViewDeps {
  readonly directory: Directory
  /** Shows the runs of one agent. */
  readonly showRuns: (agentId: string) => void
}

/** The agents of the workspace. */
export function agentsView({ directory, showRuns }: AgentsViewDeps) {
  const body = h('tbody')
  const table = h(
    'table',
    {},
    h('thead', {}, h('tr', {}, ...['Agent', 'Type', 'Status', 'Version', 'Created'].map(columnHead))),
    body,
  )
  const empty = noAgentsYet()
  const more = h('p', { class: 'hint' })
  const show = keyedList<Agent>(
    body,
    ({ agent_id }) => agent_id,
    (agent) => agentRow(agent, showRuns),
  )
  return {
    element: h('section', { class: 'panel agents', 'aria-label': 'Agents' }, table, more, empty),
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

function agentRow({ agent_id, created_at }: Agent, showRuns: AgentsViewDeps['showRuns']): Part<Agent> {
  const name = h('a', { href: '#/runs', title: `Runs of agent ${agent_id}` })
  name.addEventListener('click', () => showRuns(agent_id))
  const type = h('td')
  const status = h('span')
  const version = h('td')
  const created = h('time', { datetime: created_at, title: created_at })
  return {
    element: h('tr', {}, h('td', {}, name), type, h('td', {}, status), version, h('td', {}, created)),
    update(agent) {
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
