import { createPrices } from '../base/conventions/prices.ts'
import { SharedSlice } from '../base/http/shared-slice.ts'
import { createSchemaChecks } from '../outbound/model/output-schema.ts'
import { singleConnection } from '../stores/postgres/connect.ts'
import type { FeatureContext } from '../tenants/feature.ts'
import type { Caller } from '../tenants/keys/schema.ts'
import { beginChild } from './invoke/children.ts'
import { Invocations } from './invoke/invocations.ts'
import { Responder, type ResponseMode } from './invoke/respond.ts'
import { FollowedOutputs } from './output/followed-outputs.ts'
import { endOf, OutputLog } from './output/output-log.ts'
import { ServedOutputs } from './output/served-outputs.ts'
import { startPauseExpiry } from './pauses/expiry.ts'
import type { PauseRow } from './pauses/schema.ts'
import { answeredAbout, type Decision, Pauses } from './pauses/store.ts'
import { ChangeSignals } from './run/change-signals.ts'
import type { HostedContext } from './run/context.ts'
import { Scheduler } from './scheduler/scheduler.ts'
import { Sessions } from './sessions/store.ts'
import { loadProgress, readExecutors } from './store/load.ts'

const END_TIMEOUT_SECONDS = 1

type HostedDeps = Pick<
  HostedContext,
  'config' | 'owner' | 'connections' | 'slowConsumerMs' | 'heartbeatMs' | 'model' | 'egress' | 'secrets' | 'peers'
>

/** Starts everything that runs hosted agents (docs/hosted-agents.md). */
export function startHosted(feature: FeatureContext, deps: HostedDeps) {
  const { sql } = feature
  const { peers } = deps
  const context: HostedContext = {
    ...feature,
    ...deps,
    patrol: singleConnection(sql),
    schemas: createSchemaChecks(),
    prices: createPrices(deps.config.modelPrices),
    slice: new SharedSlice(),
    budgetChanges: new ChangeSignals(),
  }
  const scheduler: Scheduler = new Scheduler(context, (...call) => beginChild(context, scheduler, ...call))
  const invocations = new Invocations(context, scheduler)
  const followed =
    peers &&
    new FollowedOutputs({
      ...context,
      peers,
      executorsOf: (runs) => readExecutors(context.patrol, runs),
      runsMax: context.config.runsAtOnce,
      onAvailable: (run) => scheduler.notify(run),
    })
  const responder = new Responder(context, { scheduler, followed })
  const pauses = new Pauses(context)
  const endExpiry = startPauseExpiry(context, (run) => {
    scheduler.stopRun(run)
    scheduler.dispatchSoon()
  })
  scheduler.start()

  /** Stores a decision and responds about the run that was invoked. */
  function resume(caller: Caller, type: PauseRow['type'], pauseId: string, decision: Decision, mode: ResponseMode) {
    return responder.respond(caller.workspaceId, mode, async () => {
      const pause = await pauses.get(caller, type, pauseId)
      const run = answeredAbout(caller, pause)
      const seen = mode.stream === true ? await loadProgress(sql, run) : null
      const after = seen === null ? undefined : endOf(OutputLog.of(seen))
      const paused = { workspaceId: caller.workspaceId, runId: pause.run_id }
      const { outcome } = await scheduler.resume(paused, (owner) => pauses.decide(caller, pause, decision, owner))
      return { ...run, outcome, after }
    })
  }

  feature.teardown.add('hosted runs', async () => {
    await endExpiry()
    await followed?.stop()
    await scheduler.stop()
    await context.patrol.end({ timeout: END_TIMEOUT_SECONDS })
  })

  return {
    slice: context.slice,
    invocations,
    responder,
    pauses,
    sessions: new Sessions(context, (run, reason) => invocations.cancel(run, reason)),
    resume,
    /** For other processes; undefined in a process that works alone. */
    servedOutputs: peers && new ServedOutputs(context, scheduler),
  }
}

export type Hosted = ReturnType<typeof startHosted>
