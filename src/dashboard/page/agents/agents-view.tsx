import { useState } from 'preact/hooks'
import { counted } from '../../../base/format.ts'
import { address, hrefOf, setQuery } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import type { Agent } from '../data/records.ts'
import { noAgentsYet } from '../parts/hints.tsx'
import { Icon } from '../parts/icons.tsx'
import { SearchField } from '../parts/search-field.tsx'
import { Skeleton } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { AgentEditor } from './agent-editor.tsx'
import { AgentPane } from './agent-pane.tsx'

/** The agents of the workspace, and beside them the one that the address names. */
export function AgentsView() {
  const { directory } = useSession()
  const { path, query } = address.value
  const agent = directory.find(path[0] ?? '')
  const isNew = query.new !== undefined
  return (
    <section class={`view agents ${agent === undefined && !isNew ? '' : 'with-detail'}`} aria-label="Agents">
      <div class="view-head">
        <h1>Agents</h1>
        <div class="view-tools">
          <a class="button primary small" href={hrefOf('agents', [], { new: 'yes' })}>
            <Icon name="plus" />
            <span>New agent</span>
          </a>
        </div>
      </div>
      <div class="split">
        <AgentList selected={agent?.agent_id ?? null} />
        {isNew && (
          <section class="panel detail" aria-label="New agent">
            <div class="detail-head">
              <h2>New agent</h2>
              <button type="button" class="icon-only" aria-label="Close" onClick={() => setQuery({ new: null })}>
                <Icon name="close" />
              </button>
            </div>
            <AgentEditor agent={null} />
          </section>
        )}
        {agent !== undefined && !isNew && <AgentPane key={agent.agent_id} agent={agent} />}
      </div>
    </section>
  )
}

function AgentList({ selected }: { readonly selected: string | null }) {
  const { directory } = useSession()
  const [text, setText] = useState('')
  const agents = directory.agents.value
  if (!directory.isLoaded.value) return <Skeleton lines={6} />
  if (agents.length === 0) return noAgentsYet()
  const wanted = text.trim().toLowerCase()
  const shown = agents.filter(({ name, agent_id, model }) =>
    [name, agent_id, model ?? ''].some((value) => value.toLowerCase().includes(wanted)),
  )
  return (
    <div class="list-pane">
      <SearchField icon="search" label="Search agents" placeholder="Name, model, id" value={text} onType={setText} />
      <ul class="cards">
        {shown.map((agent) => (
          <AgentCard key={agent.agent_id} agent={agent} isSelected={agent.agent_id === selected} />
        ))}
      </ul>
      <p class="hint">
        {counted(shown.length, 'agent')}
        {directory.isPartial.value && '; GET /api/v1/agents lists more'}
      </p>
    </div>
  )
}

function AgentCard({ agent, isSelected }: { readonly agent: Agent; readonly isSelected: boolean }) {
  const { directory } = useSession()
  const { agent_id, runtime_type, model, status, version } = agent
  return (
    <li>
      <a class="card" href={hrefOf('agents', [agent_id])} aria-current={isSelected ? 'true' : undefined}>
        <span class="card-title">{directory.nameOf(agent_id)}</span>
        <span class="hint">
          {runtime_type === 'hosted' ? (model ?? 'hosted') : 'external'} · version {version}
        </span>
        {status === 'paused' && <Status name="paused" />}
      </a>
    </li>
  )
}
