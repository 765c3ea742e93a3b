import { useState } from 'preact/hooks'
import { address, hrefOf, navigate } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import type { Agent } from '../data/records.ts'
import { useAttempt } from '../data/use-attempt.ts'
import { Id } from '../parts/copy.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Icon } from '../parts/icons.tsx'
import { Status } from '../parts/status.tsx'
import { openTab, Tabs } from '../parts/tabs.tsx'
import { AgentEditor } from './agent-editor.tsx'
import { AgentMetrics } from './agent-metrics.tsx'
import { AgentTry } from './agent-try.tsx'
import { KeyList } from './key-list.tsx'

const HOSTED_TABS = { metrics: 'Metrics', try: 'Try it', settings: 'Settings', keys: 'Keys' }
const EXTERNAL_TABS = { metrics: 'Metrics', settings: 'Settings', keys: 'Keys' }

/** One agent: its metrics, a form to try it, its settings, and its keys. */
export function AgentPane({ agent }: { readonly agent: Agent }) {
  const tabs = agent.runtime_type === 'hosted' ? HOSTED_TABS : EXTERNAL_TABS
  const tab = openTab({ name: 'tab', tabs })
  return (
    <section class="panel detail agent" aria-label="Agent">
      <div class="detail-head">
        <a class="icon-only back" href={hrefOf('agents')} aria-label="All agents">
          <Icon name="back" />
        </a>
        <h2>{agent.name}</h2>
        <Status name={agent.status} />
        <Id id={agent.agent_id} what="agent id" />
        <AgentActions agent={agent} />
      </div>
      {agent.description && <p class="hint">{agent.description}</p>}
      <Tabs label="Parts of the agent" name="tab" tabs={tabs} />
      {tab === 'metrics' && <AgentMetrics agentId={agent.agent_id} />}
      {tab === 'try' && <AgentTry agent={agent} />}
      {tab === 'settings' && <AgentEditor key={agent.version} agent={agent} />}
      {tab === 'keys' && <KeyList agentId={agent.agent_id} />}
    </section>
  )
}

function AgentActions({ agent }: { readonly agent: Agent }) {
  const { api, directory } = useSession()
  const [isArchiving, setArchiving] = useState(false)
  const { problem, attempt } = useAttempt()
  const { agent_id: id, status } = agent
  const toggle = () =>
    attempt(async () => {
      directory.put(
        await api.patch<Agent>(`/api/v1/agents/${id}`, { status: status === 'paused' ? 'active' : 'paused' }),
      )
    })
  const archive = () =>
    attempt(async () => {
      await api.delete(`/api/v1/agents/${id}`)
      directory.remove(id)
      navigate(hrefOf('agents'))
    })
  return (
    <div class="run-actions">
      <a
        class="button small"
        href={hrefOf('runs', [], { agent: id, ...(address.value.query.range && { range: address.value.query.range }) })}
      >
        Its runs
      </a>
      <button type="button" class="small" onClick={() => void toggle()}>
        <Icon name={status === 'paused' ? 'play' : 'pause'} />
        <span>{status === 'paused' ? 'Resume' : 'Pause'}</span>
      </button>
      <button type="button" class="small" onClick={() => setArchiving(true)}>
        Archive
      </button>
      {problem !== '' && <p class="problem">{problem}</p>}
      {isArchiving && (
        <Dialog title={`Archive ${agent.name}?`} close={() => setArchiving(false)}>
          <p>Its keys stop working at once. Its runs stay readable. This cannot be undone.</p>
          <div class="actions">
            <button type="button" class="danger" onClick={() => void archive()}>
              Archive
            </button>
            <button type="button" onClick={() => setArchiving(false)}>
              Keep it
            </button>
          </div>
        </Dialog>
      )}
    </div>
  )
}
