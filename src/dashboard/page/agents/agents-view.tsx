import { address, hrefOf, navigate } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { useAttempt } from '../data/loading.ts'
import type { Agent } from '../data/records.ts'
import { ConfirmButton } from '../parts/confirm.tsx'
import { BackLink, Button, Id, openTab, Tabs } from '../parts/controls.tsx'
import { ResourceView } from '../parts/resource-view.tsx'
import { ProblemText, Status } from '../parts/states.tsx'
import { AgentEditor } from './agent-editor.tsx'
import { AgentList } from './agent-list.tsx'
import { AgentMetrics } from './agent-metrics.tsx'
import { AgentTry } from './agent-try.tsx'
import { AgentVersions } from './agent-versions.tsx'
import { KeyList } from './key-list.tsx'

/** The agents of the workspace, and beside them the one that the address names. */
export function AgentsView() {
  const { directory } = useSession()
  const [id = ''] = address.value.path
  const agent = directory.find(id)
  const pane = agent && <AgentPane key={agent.agent_id} agent={agent} />
  // One that is not listed may be archived.
  const list = { ...directory.reading.value, isLoading: true }
  return (
    <ResourceView view="agents" title="Agents" noun="agent" list={list} pane={pane} form={<AgentEditor agent={null} />}>
      <AgentList selected={agent?.agent_id ?? null} />
    </ResourceView>
  )
}

const HOSTED_TABS = { metrics: 'Metrics', try: 'Try it', settings: 'Settings', versions: 'Versions', keys: 'Keys' }
const EXTERNAL_TABS = { metrics: 'Metrics', settings: 'Settings', versions: 'Versions', keys: 'Keys' }

/** One agent: its metrics, a form to try it, its settings, their versions, and its keys. */
function AgentPane({ agent }: { readonly agent: Agent }) {
  const tabs = agent.runtime_type === 'hosted' ? HOSTED_TABS : EXTERNAL_TABS
  const tab = openTab({ name: 'tab', tabs })
  return (
    <section class="panel detail agent" aria-label="Agent">
      <div class="detail-head">
        <BackLink href={hrefOf('agents')} label="All agents" />
        <h2>{agent.name}</h2>
        <Status name={agent.status} />
        <Id id={agent.agent_id} what="agent id" />
        <AgentActions agent={agent} />
      </div>
      {agent.description && <p class="hint">{agent.description}</p>}
      <Tabs label="Parts of the agent" name="tab" tabs={tabs} />
      {tab === 'metrics' && <AgentMetrics agentId={agent.agent_id} />}
      {tab === 'try' && <AgentTry agent={agent} />}
      {tab === 'settings' && <AgentEditor agent={agent} />}
      {tab === 'versions' && <AgentVersions agent={agent} />}
      {tab === 'keys' && <KeyList agentId={agent.agent_id} />}
    </section>
  )
}

function AgentActions({ agent }: { readonly agent: Agent }) {
  const { api, directory } = useSession()
  const { problem, attempt } = useAttempt()
  const { agent_id: id, status } = agent
  const toggle = () =>
    attempt(async () => {
      directory.put(
        await api.patch<Agent>(`/api/v1/agents/${id}`, { status: status === 'paused' ? 'active' : 'paused' }),
      )
    })
  const archive = async () => {
    await api.delete(`/api/v1/agents/${id}`)
    directory.archive(id)
    navigate(hrefOf('agents'))
  }
  return (
    <div class="head-actions">
      <a class="button small" href={hrefOf('runs', [], { agent: id, range: address.value.query.range })}>
        Its runs
      </a>
      <Button
        needs="admin"
        class="small"
        onClick={() => void toggle()}
        icon={status === 'paused' ? 'play' : 'pause'}
        text={status === 'paused' ? 'Resume' : 'Pause'}
      />
      <ConfirmButton text="Archive" title={`Archive ${agent.name}?`} action="Archive" act={archive}>
        <p>Its keys stop working at once, for good. Its runs stay readable. It can be restored later.</p>
      </ConfirmButton>
      <ProblemText text={problem} />
    </div>
  )
}
