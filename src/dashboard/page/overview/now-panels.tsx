import { count, words } from '../../../base/format.ts'
import { hrefOf } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { hrefOfPause } from '../data/waiting.ts'
import { Icon } from '../parts/controls.tsx'
import { Skeleton, Status } from '../parts/states.tsx'
import { Ago } from '../parts/time.tsx'

const STATES = ['queued', 'running', 'awaiting_approval', 'awaiting_input']
const WAITING_SHOWN = 5

/** Runs that are under way, by status. */
export function StatesNow({ states }: { readonly states: ReadonlyMap<string, number> | undefined }) {
  return (
    <section class="panel states">
      <h2>Runs under way now</h2>
      {states === undefined ? (
        <Skeleton />
      ) : (
        <ul>
          {STATES.map((status) => (
            <li key={status}>
              <a href={hrefOf('runs', [], { status })}>
                <Status name={status} text={words(status)} />
                <b>{count(states.get(status) ?? 0)}</b>
              </a>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

/** The newest approvals and questions. */
export function WaitingNow() {
  const { waiting, directory } = useSession()
  const pending = waiting.pending.value
  return (
    <section class="panel waiting-now">
      <h2>
        Waiting for a person <span class="hint">{pending.length > 0 && count(pending.length)}</span>
      </h2>
      {pending.length === 0 ? (
        <p class="hint quiet-note">
          <Icon name="check" /> Nothing waits.
        </p>
      ) : (
        <ul class="rows">
          {pending.slice(0, WAITING_SHOWN).map((pause) => (
            <li key={pause.id}>
              <a href={hrefOfPause(pause.kind, pause.id)}>
                <span class="row-title">
                  {pause.kind === 'approvals' ? (
                    <>
                      Approve <code>{pause.tool}</code>
                    </>
                  ) : (
                    pause.question
                  )}
                </span>
                <span class="hint">{directory.nameOf(pause.agent_id)}</span>
              </a>
              <Ago at={pause.created_at} />
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}
