import type { Clock } from '../base/clock.ts'
import type { Limits } from '../base/limits.ts'
import type { Log } from '../base/log.ts'
import { Loops } from '../base/loops.ts'
import type { PriceTable } from '../conventions/prices.ts'
import { createPrices } from '../conventions/prices.ts'
import type { EgressAllowList } from '../egress/allow-list.ts'
import type { Egress } from '../egress/egress.ts'
import type { KeyRing } from '../keys/key-ring.ts'
import type { Caller } from '../keys/schema.ts'
import type { Connections } from '../live/connections.ts'
import type { Model } from '../model/model.ts'
import { createSchemaChecks, type SchemaChecks } from '../model/output-schema.ts'
import type { Peers } from '../partitions/shared/peers.ts'
import { type Sql, singleConnection } from '../postgres/connect.ts'
import type { Secrets } from '../secrets/store.ts'
import { ChildRuns } from './invoke/children.ts'
import { Invocations } from './invoke/invocations.ts'
import { Responder, type ResponseMode } from './invoke/respond.ts'
import { FollowedOutputs } from './output/followed-outputs.ts'
import { endOf, OutputLog } from './output/output-log.ts'
import { ServedOutputs } from './output/served-outputs.ts'
import { startPauseExpiry } from './pauses/expiry.ts'
import type { PauseRow } from './pauses/schema.ts'
import { answeredAbout, type Decision, Pauses } from './pauses/store.ts'
import { ChangeSignals } from './run/change-signals.ts'
import type { Children } from './run/run.ts'
import { Scheduler } from './scheduler/scheduler.ts'
import { Sessions } from './sessions/store.ts'
import { loadProgress } from './store/load.ts'
import { readExecutors } from './store/outcome.ts'
import { McpLists } from './tools/mcp-lists.ts'

/** How hosted agents are run (docs/specification.md#hosted-agents). */
export interface HostedConfig {
  /** Without a key and an address no agent can be invoked. */
  readonly openAiApiKey: string | undefined
  readonly openAiBaseUrl: string | undefined
  readonly modelPrices: PriceTable
  /** What tools may access besides public addresses. */
  readonly egressAllow: EgressAllowList
  /** Encrypts the secrets of workspaces; undefined: use a key file in `dataDir`. */
  readonly secretsKey: Uint8Array | undefined
  /** Concurrent runs of this process, in total and per workspace. */
  readonly runsAtOnce: number
  readonly runsAtOncePerWorkspace: number
  /** Queued runs of a workspace. */
  readonly queuedRuns: number
  /** How long invoke waits for a run. */
  readonly waitMs: number
  /** How long a paused run waits for a decision; null: forever. */
  readonly pauseMs: number | null
}

interface HostedDeps {
  readonly sql: Sql
  readonly clock: Clock
  readonly log: Log
  readonly limits: Limits
  readonly config: HostedConfig
  /** This process, in the table `instances`. */
  readonly instanceId: string
  readonly ring: KeyRing
  readonly connections: Connections
  readonly slowConsumerMs: number
  readonly heartbeatMs: number
  readonly model: Model
  readonly egress: Egress
  readonly secrets: Secrets
  readonly onChange: () => void
  /** The other processes that execute runs; undefined in a process that works alone. */
  readonly peers: Peers | undefined
  /** Supervises the background loops of runs and pauses. */
  readonly loops?: Loops
}

const END_TIMEOUT_SECONDS = 1

/** Wires up everything that runs hosted agents (docs/specification.md#hosted-agents). */
export function startHosted(deps: HostedDeps) {
  const { sql, clock, log, limits, config, instanceId: owner, onChange } = deps
  const schemas = createSchemaChecks()
  const patrol = singleConnection(sql)
  const starting = { sql, owner, clock, limits, scheduler: () => scheduler, secrets: deps.secrets, schemas, onChange }
  const hasModel = config.openAiApiKey !== undefined || config.openAiBaseUrl !== undefined
  const invocations = new Invocations({ ...starting, hasModel, queuedMax: config.queuedRuns })
  const scheduler: Scheduler = createScheduler(deps, { patrol, schemas, children: new ChildRuns(starting) })
  const { connections, ring, slowConsumerMs, heartbeatMs } = deps
  const shared = deps.peers === undefined ? undefined : shareOutputs(deps, deps.peers, scheduler, patrol)
  const responder = new Responder({
    sql,
    scheduler,
    ring,
    connections,
    followed: shared?.followed,
    slowConsumerMs,
    heartbeatMs,
    waitMs: config.waitMs,
  })
  const pauses = new Pauses({ sql, clock, limits, schemas, onChange })
  const sessions = new Sessions({ sql, cancelRun: (run, reason) => invocations.cancel(run, reason) })
  const endExpiry = startPauseExpiry({
    sql,
    patrol,
    clock,
    log,
    loops: deps.loops,
    onChange,
    onEnded: (run) => {
      scheduler.stopRun(run)
      scheduler.dispatchSoon()
    },
  })
  scheduler.start()

  /** Stores a decision and responds about the run that was invoked. */
  function resume(caller: Caller, type: PauseRow['type'], pauseId: string, decision: Decision, mode: ResponseMode) {
    return responder.respond(caller.workspaceId, mode, async () => {
      const run = answeredAbout(caller, await pauses.get(caller, type, pauseId))
      const seen = mode.stream === true ? await loadProgress(sql, run) : null
      const after = seen === null ? undefined : endOf(OutputLog.of(seen))
      await pauses.decide(caller, type, pauseId, decision)
      scheduler.dispatchSoon()
      return { ...run, outcome: null, after }
    })
  }

  return {
    invocations,
    responder,
    pauses,
    sessions,
    resume,
    /** For other processes; undefined in a process that works alone. */
    servedOutputs: shared?.served,
    /** Runs that this process executes, for the metrics. */
    count: () => scheduler.count,
    stop: async () => {
      await endExpiry()
      await shared?.followed.stop()
      await scheduler.stop()
      await patrol.end({ timeout: END_TIMEOUT_SECONDS })
    },
  }
}

export type Hosted = ReturnType<typeof startHosted>

interface SchedulerParts {
  readonly patrol: Sql
  readonly schemas: SchemaChecks
  readonly children: Pick<Children, 'begin'>
}

/** Gives streams the output of runs that other processes execute, and these the output of the runs executed here. */
function shareOutputs(deps: HostedDeps, peers: Peers, scheduler: Scheduler, patrol: Sql) {
  const { log, loops = new Loops(log), instanceId, connections, slowConsumerMs, config } = deps
  const followed = new FollowedOutputs({
    peers,
    executorsOf: (runs) => readExecutors(patrol, runs),
    instanceId,
    runsMax: config.runsAtOnce,
    connections,
    onAvailable: (run) => scheduler.notify(run),
    log,
    loops,
  })
  return { followed, served: new ServedOutputs({ scheduler, connections, slowConsumerMs, loops }) }
}

function createScheduler(deps: HostedDeps, { patrol, schemas, children }: SchedulerParts): Scheduler {
  const { sql, clock, log, limits, config, instanceId: owner, loops, onChange } = deps
  return new Scheduler({
    sql,
    patrol,
    owner,
    clock,
    log,
    model: deps.model,
    prices: createPrices(config.modelPrices),
    budgetChanges: new ChangeSignals(),
    schemas,
    tools: { egress: deps.egress, secrets: deps.secrets, lists: new McpLists(clock) },
    children,
    pauseMs: config.pauseMs,
    outputBytesMax: limits.run_output_bytes,
    runsAtOnce: config.runsAtOnce,
    runsAtOncePerWorkspace: config.runsAtOncePerWorkspace,
    loops,
    onChange,
  })
}
