import type { ComponentChildren } from 'preact'
import { compact, count, dollars, duration } from '../../../base/format.ts'
import { hrefOf, hrefOfRun, runsHref } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { durationMs, isLive, type Run } from '../data/records.ts'
import { Icon, Id } from '../parts/controls.tsx'
import { Facts, Status } from '../parts/states.tsx'
import { Moment, useNow } from '../parts/time.tsx'
import { Tag } from '../runs/columns.tsx'
import { RunActions } from './run-actions.tsx'
import type { RunModel } from './run-model.ts'

/** Who ran, how it went and what it cost. */
export function RunHead({ model, run }: { readonly model: RunModel; readonly run: Run }) {
  const { directory } = useSession()
  return (
    <header class="run-head">
      <div class="view-head">
        <a class="icon-only back" href={runsHref.value} aria-label="All runs" title="All runs (Esc)">
          <Icon name="back" />
        </a>
        <h1 tabIndex={-1}>
          <a href={hrefOf('agents', [run.agent_id])}>{directory.nameOf(run.agent_id)}</a>
        </h1>
        <Status name={run.status} />
        <Id id={run.run_id} what="run id" />
        <RunActions model={model} run={run} />
      </div>
      <RunFacts run={run} />
      {run.error_message !== null && (
        <p class="problem" role="alert">
          {run.error_message}
        </p>
      )}
    </header>
  )
}

function RunFacts({ run }: { readonly run: Run }) {
  const { usage } = run
  const facts: readonly (readonly [string, ComponentChildren])[] = [
    ['Duration', <Took key="took" run={run} />],
    ['Created', <Moment key="created" at={run.created_at} />],
    ['Ended', run.completed_at && <Moment key="ended" at={run.completed_at} />],
    ['Events', count(run.event_count)],
    ['Tokens', usage.total_tokens > 0 && `${compact(usage.input_tokens)} in, ${compact(usage.output_tokens)} out`],
    ['Cost', run.cost_usd > 0 && dollars(run.cost_usd)],
    ['Trigger', run.trigger_type],
    ['Agent version', String(run.agent_version)],
    ['Session', run.session_id && <a href={hrefOf('sessions', [run.session_id])}>…{run.session_id.slice(-8)}</a>],
    ['User', run.external_user_id],
    ['External id', run.external_run_id && <code>{run.external_run_id}</code>],
    ['Parent', run.parent_run_id && <a href={hrefOfRun(run.parent_run_id)}>run …{run.parent_run_id.slice(-8)}</a>],
    ['Tags', run.tags.length > 0 && run.tags.map((tag) => <Tag key={tag} tag={tag} />)],
  ]
  return <Facts facts={facts} />
}

function Took({ run }: { readonly run: Run }) {
  const now = useNow()
  const ms = durationMs(run, now)
  if (ms === null) return <>–</>
  return <>{isLive(run) ? `${duration(ms)} so far` : duration(ms)}</>
}
