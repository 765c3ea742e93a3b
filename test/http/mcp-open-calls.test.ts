import { beforeAll, describe, expect, test } from 'bun:test'
import { remoteClickHouse } from '../../src/stores/clickhouse/backend.ts'
import { type ColumnarClient, createColumnarClient } from '../../src/stores/clickhouse/client.ts'
import { runningStatements } from '../support/columnar.ts'
import { eventually } from '../support/eventually.ts'
import { newTenant } from '../support/feeds.ts'
import { startMcpRig } from '../support/mcp-agents.ts'
import { callLegacy, callModern } from '../support/mcp-client.ts'

/** Calls of the MCP server whose client disconnects. */

/** Of one key. */
const OPEN_CALLS_MAX = 64

let rig: Awaited<ReturnType<typeof startMcpRig>>
let engine: ColumnarClient

beforeAll(async () => {
  rig = await startMcpRig()
  engine = createColumnarClient(remoteClickHouse(rig.service.clickhouseUrl))
})

describe.each(Object.entries({ '2025-11-25': callLegacy, '2026-07-28': callModern }))(
  'a client of revision %s that disconnects',
  (revision, call) => {
    test('stops its query', async () => {
      const gone = new AbortController()
      const sql = `select count() as "of ${revision}" from numbers(10000000000000) where sipHash64(number) = 1`
      const params = { name: 'query', arguments: { sql } }
      const answer = call(rig.service.url, rig.service.workspaceKey, 'tools/call', params, { signal: gone.signal })
      answer.catch(() => {})
      const running = () => runningStatements(engine, `SELECT * FROM (SELECT %of ${revision}%numbers(%`)
      await eventually(async () => (await running()) > 0)
      gone.abort()
      await eventually(async () => (await running()) === 0)
    })

    test('makes room for another call of its key', async () => {
      const { workspaceKey, api } = await newTenant(rig.service)
      const name = `hangs_${revision.slice(0, 4)}`
      const { agentId } = await rig.agent({ ...rig.service, workspaceKey, api }, [{ hangs: true }], {
        name,
        expose: ['mcp'],
      })
      const gone = new AbortController()
      const params = { name, arguments: { input: 'x' } }
      const calls = Array.from({ length: OPEN_CALLS_MAX }, () =>
        call(rig.service.url, workspaceKey, 'tools/call', params, { signal: gone.signal }),
      )
      const left = Promise.allSettled(calls)
      await eventually(
        async () => (await api('GET', `/api/v1/runs?agent_id=${agentId}&limit=100`)).data.items.length === 64,
      )
      const status = async () => (await call(rig.service.url, workspaceKey, 'tools/list')).status
      expect(await status()).toBe(429)
      gone.abort()
      await left
      await eventually(async () => (await status()) === 200)
    })
  },
)
