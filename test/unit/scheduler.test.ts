import { expect, test } from 'bun:test'
import { SharedSlice } from '../../src/base/http/shared-slice.ts'
import { createLog } from '../../src/base/log.ts'
import type { HostedContext } from '../../src/hosted/run/context.ts'
import type { RunProgress } from '../../src/hosted/run/run.ts'
import { Scheduler } from '../../src/hosted/scheduler/scheduler.ts'
import { eventually } from '../support/eventually.ts'

/** A run without tools, budget or session that has just begun. */
function begun(): RunProgress {
  const agent = { name: 'a', model: 'm', tools: [], allowInputRequests: false, maxSteps: 20, timeoutSeconds: 300 }
  const run = { runId: crypto.randomUUID(), workspaceId: crypto.randomUUID(), sessionId: null, parentCallId: null }
  const plan = {
    agent: { ...agent, outputSchema: null, budgetUsd: null },
    system: '',
    history: [],
    user: 'hi',
    budgetsAbove: [],
  }
  const progress = { history: [], steps: [], calls: [], pauses: [], usedMs: 0, costUsd: 0, spentUsd: 0 }
  return { ...progress, run: { ...run, plan } } as unknown as RunProgress
}

/** A scheduler with two slots whose model never answers. */
function schedulerAsking(onAsk: () => void): Scheduler {
  const model = {
    ask: (_request: unknown, signal: AbortSignal) => {
      onAsk()
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    },
  }
  const prices = { loaded: async () => ({ costUsd: () => 0 }) }
  const config = { runsAtOnce: 2, runsAtOncePerWorkspace: 2 }
  const context = { model, prices, config, clock: { now: () => 0 }, log: createLog('error'), slice: new SharedSlice() }
  return new Scheduler(context as unknown as HostedContext, async () => null)
}

test('a run that is executed already gets no second executor, and its second slot is released', async () => {
  let asked = 0
  const scheduler = schedulerAsking(() => asked++)
  const progress = begun()
  const { workspaceId } = progress.run
  // The statement that began the run returns late: a poll has found it unattended in the meantime, and executes it.
  expect([scheduler.takeSlot(workspaceId), scheduler.takeSlot(workspaceId)]).toEqual([true, true])
  const outcomes = [scheduler.execute(progress), scheduler.execute(progress)]
  await eventually(() => asked > 0)
  expect(scheduler.count).toBe(1)
  expect([scheduler.takeSlot(workspaceId), scheduler.takeSlot(workspaceId)]).toEqual([true, false])
  scheduler.stopRun(progress.run)
  const again = scheduler.execute(progress)
  expect((await Promise.all(outcomes)).map(({ kind }) => kind)).toEqual(['released', 'released'])
  await eventually(() => asked === 2)
  // The end of the stopped executor leaves the entry of the one after it.
  expect(scheduler.count).toBe(1)
  scheduler.stopRun(progress.run)
  expect((await again).kind).toBe('released')
  expect(scheduler.count).toBe(0)
})
