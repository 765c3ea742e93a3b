import { expect, test } from 'bun:test'
import { columnarHealth } from '../../src/sql/analytics/health.ts'
import type { ColumnarClient } from '../../src/stores/clickhouse/client.ts'

/** The ClickHouse checks of `/readyz`. */

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
    owned: () => [{ id: 0, journal: { endSeq: state.end }, sink: { loadedSeq: () => state.loaded } }],
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

test('reports rows that wait long without any being loaded, until loading goes on', async () => {
  const { state, check } = rig()
  expect(await check('loading', 0)).toBeNull()
  // Rows appended after a long silence have not waited yet.
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

test('queries the engine at most once a second, however often /readyz is called', async () => {
  const { state, check } = rig()
  for (let i = 0; i < 50; i++) await check('sql', 1)
  expect(state.asked).toBe(1)
  await check('sql', 1_001)
  expect(state.asked).toBe(2)
})
