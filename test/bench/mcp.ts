import { callLegacy, callModern } from '../support/mcp-client.ts'
import type { Bench } from './parts.ts'
import { ask, timed } from './queries.ts'
import { median, ms } from './report.ts'
import { type BenchService, startBenchService } from './servers.ts'

const TIMES = 200
const WARM = 50
const TARGET_MS = 3
const SQL = {
  'one row': 'select max(seq) as v from events',
  'about 60 KiB': "select number, repeat('a', 280) as text from numbers(190)",
}

/** Queries through the MCP server, and over HTTP. */
export async function measureMcp({ report }: Bench): Promise<void> {
  const service = await startBenchService({ QUERY_CAPS: '{"at_once": 4}', RATE_LIMIT_QUERIES_PER_MINUTE: '0' })
  report.heading('mcp: the tool query, and the same query over HTTP')
  const first = await timed(() => callModern(`http://127.0.0.1:${service.port}`, service.workspaceKey, 'tools/list'))
  report.line(`the first call, which loads the package: ${ms(first)}`)
  for (const [size, sql] of Object.entries(SQL)) {
    const ways = {
      http: () => ask(service, sql),
      '2026-07-28': () => query(service, sql, callModern),
      '2025-11-25': () => query(service, sql, callLegacy),
    }
    const times = new Map(Object.keys(ways).map((way) => [way, [] as number[]]))
    for (let i = 0; i < WARM + TIMES; i++)
      for (const [way, call] of Object.entries(ways)) {
        const took = await timed(call)
        if (i >= WARM) times.get(way)!.push(took)
      }
    const http = median(times.get('http')!)
    for (const [way, took] of times) {
      if (way === 'http') continue
      const more = median(took) - http
      const text = `${size}, ${way}: ${ms(median(took))}, ${ms(http)} over HTTP, target at most ${TARGET_MS} ms more`
      report.target(text, more <= TARGET_MS)
    }
  }
}

async function query(service: BenchService, sql: string, call: typeof callModern): Promise<void> {
  const { text, message } = await call(`http://127.0.0.1:${service.port}`, service.workspaceKey, 'tools/call', {
    name: 'query',
    arguments: { sql },
  })
  if (message.result?.structuredContent === undefined) throw new Error(text)
}
