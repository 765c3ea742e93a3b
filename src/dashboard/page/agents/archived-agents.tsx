import { useEffect, useState } from 'preact/hooks'
import { useSession } from '../context/session.ts'
import { useAttempt } from '../data/loading.ts'
import type { Agent } from '../data/records.ts'
import { Button } from '../parts/controls.tsx'
import { Loaded, ProblemText } from '../parts/states.tsx'
import { Ago } from '../parts/time.tsx'

/** Below the list: the agents that were archived, read when they are asked for. */
export function ArchivedAgents() {
  const [isOpen, setOpen] = useState(false)
  return (
    <details class="archived-agents" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>Archived agents</summary>
      {isOpen && <Archived />}
    </details>
  )
}

function Archived() {
  const { api, directory } = useSession()
  useEffect(() => void directory.refreshArchived(), [directory])
  const restoring = useAttempt()
  const restore = (id: string) =>
    restoring.attempt(async () => {
      directory.put(await api.post<Agent>(`/api/v1/agents/${id}/restore`, {}))
    })
  return (
    <>
      <ProblemText text={restoring.problem} />
      <Loaded read={directory.readingArchived.value} empty={<p class="hint">None.</p>}>
        {(agents) => (
          <ul>
            {agents.map(({ agent_id, name, updated_at }) => (
              <li key={agent_id}>
                {name}{' '}
                <span class="hint">
                  archived <Ago at={updated_at} />
                </span>{' '}
                <Button
                  needs="admin"
                  class="small"
                  onClick={() => void restore(agent_id)}
                  text="Restore"
                  label={`Restore ${name}`}
                />
              </li>
            ))}
          </ul>
        )}
      </Loaded>
    </>
  )
}
