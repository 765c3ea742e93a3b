import { type LoadResult, runScript } from '../../load.ts'
import { median, ms, whole } from '../../report.ts'
import { eachPeer, markdown, type PeerOptions } from '../peer.ts'
import type { Appender, AppendPeer, Way } from './appender.ts'
import { clickhouse } from './clickhouse.ts'
import { nats } from './nats.ts'
import { postgres } from './postgres.ts'
import { redis } from './redis.ts'
import { service } from './service.ts'

export const APPENDERS: readonly AppendPeer[] = [service, redis, nats, postgres, clickhouse]

const CONNECTIONS = 64
const WARM_UP_SECONDS = 0.5
const HEADER = [
  ...['system', 'call', 'events a call', 'appends/s', 'events/s', 'acknowledged p50', 'p99', 'events/s until in SQL'],
  ...['an acknowledgement means', 'in SQL'],
]

/** Appends of events, acknowledged as each system does: alone on the machine, one after the other. */
export async function measureAppends(options: PeerOptions): Promise<void> {
  const { report, directory } = options
  report.heading(`peers: appends of the same events, ${CONNECTIONS} callers`)
  const rows: string[][] = []
  await eachPeer(options, APPENDERS, async (peer) => {
    const appender = await peer.start(directory)
    try {
      for (const row of await measure(appender, options)) {
        report.line(row.join(' · '))
        rows.push(row)
      }
    } finally {
      await appender.stop()
    }
  })
  for (const line of markdown(HEADER, rows).split('\n')) report.line(line)
}

async function measure(appender: Appender, options: PeerOptions): Promise<string[][]> {
  const rows: string[][] = []
  let expected = 0
  for (const way of appender.ways) {
    const results: (LoadResult & { readonly inSql: number })[] = []
    for (let round = 0; round <= options.rounds; round++) {
      const result = await load(appender, way, round === 0 ? WARM_UP_SECONDS : options.seconds)
      expected += result.calls * (way.recordsPerCall ?? way.eventsPerCall)
      if (round > 0) results.push(result)
    }
    const stored = await appender.stored()
    // More are possible: a call that was refused, or cut off at the end, may have been stored.
    if (stored < expected) throw new Error(`${appender.title} acknowledged ${expected} records and has ${stored}`)
    rows.push(rowOf(appender, way, results))
  }
  return rows
}

async function load(appender: Appender, way: Way, seconds: number): Promise<LoadResult & { readonly inSql: number }> {
  const task = { plan: way.plan(CONNECTIONS), seconds }
  const result = (await runScript('peers/append/load.ts', task)) as LoadResult
  const loadedAt = performance.now()
  await appender.settled?.()
  const settledMs = performance.now() - loadedAt
  const took = (result.calls / result.callsPerSecond) * 1_000 + settledMs
  return { ...result, inSql: (result.calls * way.eventsPerCall * 1_000) / took }
}

function rowOf(appender: Appender, way: Way, results: readonly (LoadResult & { readonly inSql: number })[]): string[] {
  const of = (figure: (result: (typeof results)[number]) => number) => median(results.map(figure))
  const calls = of(({ callsPerSecond }) => callsPerSecond)
  const failures = results.reduce((sum, each) => sum + each.failures, 0)
  const all = results.reduce((sum, each) => sum + each.calls, failures)
  const refused = results.find(({ firstFailure }) => firstFailure !== null)?.firstFailure ?? ''
  const note = failures === 0 ? '' : `; **${whole(failures)} of ${whole(all)} refused**: ${shortened(refused)}`
  const isInSql = !appender.sql.startsWith('not in SQL')
  return [
    appender.title,
    way.name,
    `${way.eventsPerCall}`,
    whole(calls),
    whole(calls * way.eventsPerCall),
    ms(of(({ p50 }) => p50)),
    ms(of(({ p99 }) => p99)),
    isInSql ? whole(of(({ inSql }) => inSql)) : '–',
    `${appender.durability}${note}`,
    appender.sql,
  ]
}

function shortened(text: string): string {
  return text.replaceAll(/\s+/g, ' ').replaceAll('|', '/').slice(0, 160)
}
