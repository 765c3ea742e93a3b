import { expect, test } from 'bun:test'
import { createLog } from '../../src/base/log.ts'
import { FAILING_MS, type LoopState, Loops } from '../../src/base/loops.ts'
import { Metrics } from '../../src/base/metrics.ts'
import { SetAside } from '../../src/base/set-aside.ts'
import { checkHealth, type HealthDeps } from '../../src/service/ops/health.ts'
import type { Journal } from '../../src/stores/journal/journal.ts'
import { eventually } from '../support/eventually.ts'
import { partitionWith } from '../support/partitions.ts'

const log = createLog('silent')

test('restarts a loop that throws until it is stopped, and reports its state', async () => {
  const loops = new Loops(log)
  const stopping = new AbortController()
  let starts = 0
  let works = false
  const ended = loops.run('work', stopping.signal, async (loop) => {
    starts++
    if (!works) throw new Error('not yet')
    loop.succeeded()
    await new Promise((resolve) => stopping.signal.addEventListener('abort', resolve))
  })
  await eventually(() => starts >= 3)
  expect(loops.states()[0]).toMatchObject({ name: 'work', lastError: new Error('not yet') })
  expect(loops.states()[0].failingMs).toBeGreaterThan(0)
  works = true
  await eventually(() => loops.states()[0].failingMs === 0)
  expect(loops.states()[0].failures).toBe(starts - 1)
  stopping.abort()
  await ended
})

test('restarts a loop that ends although nothing stopped it', async () => {
  const loops = new Loops(log)
  const stopping = new AbortController()
  let starts = 0
  const ended = loops.run('work', stopping.signal, async () => void starts++)
  await eventually(() => starts >= 2)
  stopping.abort()
  await ended
})

test('repeated work continues after a failure, never overlaps, and is awaited on stop', async () => {
  const loops = new Loops(log)
  let calls = 0
  let atOnce = 0
  let most = 0
  const stop = loops.repeat('work', 1, async () => {
    most = Math.max(most, ++atOnce)
    await Bun.sleep(3)
    atOnce--
    if (++calls % 2 === 1) throw new Error('every other time')
  })
  await eventually(() => calls >= 4)
  await stop()
  expect([most, atOnce]).toEqual([1, 0])
  expect(loops.states()[0].failures).toBeGreaterThanOrEqual(2)
})

const journal = { epoch: 'e', endSeq: 9, gaps: [{ afterSeq: 3, throughSeq: 5, loadedSeq: 0 }] } as unknown as Journal

function healthWith(
  states: LoopState[],
  check: () => Promise<unknown> = async () => {},
  setAside: HealthDeps['setAside'] = { of: () => 0 },
) {
  const deps: HealthDeps = {
    dependencies: [{ name: 'journal', essential: true, check }],
    lags: { outbox: () => 1 },
    setAside,
    owned: () => partitionWith({ journal, sink: { loadedSeq: () => 7 } }).owned(),
    loops: { states: () => states },
    setBack: () => [],
    clock: { now: Date.now },
    isStopping: () => false,
  }
  return checkHealth(deps)
}

test('readiness reports a loop that has been failing for some seconds, and gaps, but no internal details', async () => {
  const failing = { name: 'sink', failures: 4, lastError: new Error('/secret/path') }
  const brief = await healthWith([{ ...failing, failingMs: FAILING_MS - 1 }])
  expect([brief.status, brief.loops.sink.ok]).toEqual(['ready', true])
  const long = await healthWith([{ ...failing, failingMs: FAILING_MS + 1 }])
  expect([long.status, long.loops.sink]).toEqual([
    'degraded',
    { ok: false, failing_ms: FAILING_MS + 1, failures: 4, problem: 'not working' },
  ])
  expect(long.partitions).toEqual([{ partition: 0, generation: 0, epoch: 'e', end_seq: 9, loaded_seq: 7 }])
  expect(long.journal?.gaps).toEqual([{ after_seq: 3, through_seq: 5 }])
  const unable = await healthWith([], () => Promise.reject(Object.assign(new Error('x'), { code: 'EIO' })))
  expect(unable.status).toBe('unavailable')
})

test('readiness and metrics say how many rows a consumer has set aside', async () => {
  const metrics = new Metrics()
  const setAside = new SetAside(metrics)
  expect(await healthWith([], undefined, setAside)).toMatchObject({
    status: 'ready',
    consumers: { outbox: { lag: 1, set_aside: 0 } },
  })
  setAside.add('outbox', 2)
  setAside.add('outbox', 1)
  expect(await healthWith([], undefined, setAside)).toMatchObject({
    status: 'degraded',
    consumers: { outbox: { lag: 1, set_aside: 3 } },
  })
  expect(metrics.text()).toContain('consumer_rows_set_aside_total{consumer="outbox"} 3\n')
})
