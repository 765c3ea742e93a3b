import type { AgentSystem, RunState, World } from './agent-peer.ts'
import { TOOL_NAMES } from './agent-peer.ts'

/** Runs in flight at a kill. */
const RUNS_AT_ONCE = 16
/** Slow enough that kills hit requests in flight. */
const DELAYS = { modelMs: 30, toolMs: 30 }
const POLL_MS = 50
/** How long a run may take after the restart. */
const PATIENCE_MS = 30_000
/** Where callers have to continue interrupted runs, they do so after this time. */
const PROCEED_AFTER_MS = 2_000

export interface KillTally {
  /** Kills of the system. */
  kills: number
  /** Runs that were in flight at a kill. */
  runs: number
  /** Of those: completed in the end. */
  completed: number
  /** Ended as failed. */
  failed: number
  /** Neither within 30 s. */
  stuck: number
  /** Unknown to the system after the restart, although the caller had an answer about them. */
  forgotten: number
  /** Tool calls that arrived more than once with the same Idempotency-Key. */
  repeatedSameKey: number
  /** Tool calls that arrived more than once with other keys: a tool cannot recognise them by the key. */
  repeatedOtherKey: number
  /** Tool calls that completed runs never made. */
  lost: number
  /** From the start of the processes until the system answers, in milliseconds. */
  readonly restartMs: number[]
}

/**
 * Kills the system until this many runs have been in flight at a kill, each at a random moment of its life.
 * @param onKill called after each kill, once all runs have ended: a campaign takes minutes
 */
export async function killRuns(
  system: AgentSystem,
  world: World,
  count: number,
  onKill: (soFar: KillTally) => void,
): Promise<KillTally> {
  const tally = { kills: 0, runs: 0, completed: 0, failed: 0, stuck: 0, forgotten: 0 }
  const calls = { repeatedSameKey: 0, repeatedOtherKey: 0, lost: 0 }
  const result: KillTally = { ...tally, ...calls, restartMs: [] }
  await world.delay(DELAYS)
  const lifeMs = await lifeOf(system)
  while (result.runs < count) {
    await killOnce(system, world, lifeMs, result)
    onKill(result)
  }
  await world.delay({ modelMs: 0, toolMs: 0 })
  return result
}

/** How long a run takes with these delays, among as many others. */
async function lifeOf(system: AgentSystem): Promise<number> {
  const one = async () => {
    const run = Bun.randomUUIDv7()
    await system.invoke(run)
    await system.approve(run)
  }
  await Promise.all(Array.from({ length: RUNS_AT_ONCE }, one))
  const startedAt = performance.now()
  await Promise.all(Array.from({ length: RUNS_AT_ONCE }, one))
  return performance.now() - startedAt
}

/** A run as its caller sees it. */
interface Caller {
  readonly run: string
  /** Whether it had ended when the system was killed; such a run was not killed. */
  endedBefore: boolean
  wasBegun: boolean
  /** Whether the caller has had an answer about it. */
  wasAnswered: boolean
  outcome: RunState | 'stuck' | 'forgotten'
}

async function killOnce(system: AgentSystem, world: World, lifeMs: number, result: KillTally): Promise<void> {
  const up = Promise.withResolvers<void>()
  let isKilled = false
  const callers = Array.from({ length: RUNS_AT_ONCE }, async () => {
    const caller: Caller = {
      run: Bun.randomUUIDv7(),
      ...{ endedBefore: false, wasBegun: false, wasAnswered: false, outcome: 'running' },
    }
    // Starts are spread over the time that a run takes, so the kill meets each run at a random moment.
    await Bun.sleep(Math.random() * lifeMs)
    if (isKilled) return caller
    await live(system, caller)
    caller.endedBefore = !isKilled
    if (isKilled) await recover(system, caller, up.promise)
    return caller
  })
  await Bun.sleep(lifeMs)
  isKilled = true
  await system.kill()
  const startedAt = performance.now()
  await system.restart()
  result.restartMs.push(performance.now() - startedAt)
  up.resolve()
  const ended = await Promise.all(callers)
  result.kills++
  count(
    ended.filter(({ wasBegun, endedBefore }) => wasBegun && !endedBefore),
    await world.orders(),
    result,
  )
}

/** Invokes and approves, until the end or until a call fails because the system is down. */
async function live(system: AgentSystem, caller: Caller): Promise<void> {
  caller.wasBegun = true
  try {
    await system.invoke(caller.run)
    caller.wasAnswered = true
    await system.approve(caller.run)
    caller.outcome = 'ended'
  } catch {
    // The caller goes on after the restart.
  }
}

/** What a careful caller does after the restart: asks where the run is, and does what is left to do. */
async function recover(system: AgentSystem, caller: Caller, up: Promise<void>): Promise<void> {
  if (caller.outcome === 'ended') return
  await up
  const startedAt = performance.now()
  let proceedAt = startedAt + PROCEED_AFTER_MS
  while (performance.now() < startedAt + PATIENCE_MS) {
    const state = await system.state(caller.run).catch(() => 'running' as const)
    if (state === 'ended' || state === 'failed') {
      caller.outcome = state
      return
    }
    if (state === 'absent' && caller.wasAnswered) {
      caller.outcome = 'forgotten'
      return
    }
    if (state === 'absent') await system.invoke(caller.run).catch(() => {})
    if (state === 'waiting') await system.approve(caller.run).catch(() => {})
    if (state === 'running' && system.proceed !== undefined && performance.now() > proceedAt) {
      await system.proceed(caller.run).catch(() => {})
      proceedAt = performance.now() + PROCEED_AFTER_MS
    }
    await Bun.sleep(POLL_MS)
  }
  caller.outcome = 'stuck'
}

function count(killed: readonly Caller[], orders: Awaited<ReturnType<World['orders']>>, result: KillTally): void {
  for (const { run, outcome } of killed) {
    result.runs++
    if (outcome === 'ended') result.completed++
    else if (outcome === 'failed') result.failed++
    else if (outcome === 'forgotten') result.forgotten++
    else result.stuck++
    for (const tool of TOOL_NAMES) {
      const keys = orders[run]?.[tool] ?? []
      if (keys.length === 0 && outcome === 'ended') result.lost++
      if (keys.length < 2) continue
      if (new Set(keys).size === 1 && keys[0] !== '') result.repeatedSameKey++
      else result.repeatedOtherKey++
    }
  }
}
