import { expect, test } from 'bun:test'
import { columnarHealth } from '../../src/analytics/health.ts'
import type { ColumnarClient } from '../../src/columnar/client.ts'

/** What `/readyz` asks of ClickHouse. */

function rig() {
  const state = { nowMs: 0, loaded: 10, end: 10, asked: 0 }
  const client = {
    database: 'd',
    query: async () => [],
    queryText: async () => String(state.asked++),
    probeLoading: async () => {},
  } as unknown as ColumnarClient
  const dependencies = columnarHealth({
    client,
    journal: {
      get endSeq() {
        return state.end
      },
    },
    sink: { loadedSeq: () => state.loaded },
    now: () => state.nowMs,
  })
  const check = async (name: string, afterMs: number) => {
    state.nowMs += afterMs
    return dependencies
      .find((each) => each.name === name)!
      .check()
      .then(() => null, String)
  }
  return { state, check }
}

test('rows that wait for long while nothing is loaded are a problem, and none once something is', async () => {
  const { state, check } = rig()
  expect(await check('loading', 0)).toBeNull()
  // New rows after a long silence have only just come.
  state.end = 20
  expect(await check('loading', 600_000)).toBeNull()
  expect(await check('loading', 14_000)).toBeNull()
  expect(await check('loading', 2_000)).toContain('nothing has been loaded for 16 s')
  state.loaded = 15
  expect(await check('loading', 2_000)).toBeNull()
  expect(await check('loading', 20_000)).toContain('nothing has been loaded')
  state.loaded = 20
  expect(await check('loading', 2_000)).toBeNull()
  expect(await check('loading', 600_000)).toBeNull()
})

test('however often somebody asks, the engine is asked once a second', async () => {
  const { state, check } = rig()
  for (let i = 0; i < 50; i++) await check('sql', 1)
  expect(state.asked).toBe(1)
  await check('sql', 1_001)
  expect(state.asked).toBe(2)
})
