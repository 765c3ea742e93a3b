import { expect, test } from 'bun:test'
import { createLanes } from '../../src/stores/clickhouse/engine/lanes.ts'
import { Statements } from '../../src/stores/clickhouse/engine/statements.ts'

/** Queueing and fairness in the embedded engine. */

const NEVER = new AbortController().signal

/** A statement that runs until it is released. */
function held() {
  const { promise, resolve } = Promise.withResolvers<string>()
  const state = { hasBegun: false, release: () => resolve('done') }
  const task = () => {
    state.hasBegun = true
    return promise
  }
  return { state, task }
}

test('a workspace waits only for its own statements, for as long as the engine holds them', async () => {
  const lanes = createLanes(2)
  const mine = Array.from({ length: 3 }, held)
  const client = new AbortController()
  const slot = { lane: 'tenant', quotaKey: 'a' } as const
  const running = mine.map(({ task }) => lanes.run(slot, client.signal, task))
  expect(mine.map(({ state }) => state.hasBegun)).toEqual([true, true, false])
  // A client that disconnects frees nothing that the engine still works on.
  const late = lanes.run({ lane: 'stream', quotaKey: 'a' }, NEVER, async () => 'late')
  client.abort()
  expect(await running[2]!.catch(({ code }) => code)).toBe(394)
  expect(await lanes.run({ lane: 'tenant', quotaKey: 'b' }, NEVER, async () => 'other')).toBe('other')
  expect(await Promise.race([late, Promise.resolve('waiting')])).toBe('waiting')
  mine[0]!.state.release()
  expect(await late).toBe('late')
  mine[1]!.state.release()
  await lanes.idle()
})

test('a statement whose client has disconnected before it queues takes no slot', async () => {
  const lanes = createLanes(100)
  const tasks = Array.from({ length: 9 }, held)
  const client = new AbortController()
  const running = tasks.slice(0, 8).map(({ task }) => lanes.run({ lane: 'stream', quotaKey: 'a' }, NEVER, task))
  client.abort()
  const late = lanes.run({ lane: 'stream', quotaKey: 'b' }, client.signal, tasks[8]!.task)
  expect(await late.catch(({ code }) => code)).toBe(394)
  for (const { state } of tasks) state.release()
  await Promise.all(running)
  expect(tasks[8]!.state.hasBegun).toBe(false)
})

test('loading and the service continue while tenants use all their slots', async () => {
  const lanes = createLanes(100)
  const tenants = Array.from({ length: 200 }, held)
  const running = tenants.map(({ task }, i) =>
    lanes
      .run({ lane: i % 2 === 0 ? 'tenant' : 'stream', quotaKey: `${i % 50}` }, NEVER, task)
      .catch(({ code }) => code),
  )
  const own = (lane: 'load' | 'service') => lanes.run({ lane, quotaKey: undefined }, NEVER, async () => lane)
  expect(await Promise.all([own('load'), own('service')])).toEqual(['load', 'service'])
  for (const { state } of tenants) state.release()
  const ends = await Promise.all(running)
  // Streams beyond the queue's limit are rejected.
  expect(ends.filter((end) => end === 202)).toHaveLength(28)
})

test('a stuck statement fails its own workspace with a timeout, other workspaces as interrupted', async () => {
  const reported: (readonly string[])[] = []
  const statements = new Statements((quotaKeys) => reported.push(quotaKeys))
  const codes = ['a', 'a', 'b', undefined].map((key) =>
    statements.during(key, () => new Promise(() => {})).catch(({ code }) => code),
  )
  expect(await statements.during('b', async () => 'quick')).toBe('quick')
  statements.stuck('a', true)
  statements.stuck('b', true)
  expect(await Promise.all(codes)).toEqual([159, 159, 236, 236])
  expect(reported).toEqual([['a']])
  expect(await statements.during('a', async () => 1).catch(({ code }) => code)).toBe(236)
})
