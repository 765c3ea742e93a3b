import { compare } from './compare.ts'
import { type Load, type LoadResult, runScript } from './load.ts'
import { ITEMS_PER_EXPORT } from './otlp-bodies.ts'
import type { Bench } from './parts.ts'
import { type BenchService, startScript } from './servers.ts'

const TARGET = 0.6
const CONNECTIONS = 8

/** OpenTelemetry exports, durable when acknowledged, compared with a server that only decodes them. */
export async function measureOtlp({ service, report, rounds, seconds }: Bench): Promise<void> {
  const bare = await startScript('bare-otlp-server.ts', [])
  for (const signal of ['traces', 'logs'] as const) {
    const name = `otlp: ${signal}, ${ITEMS_PER_EXPORT} of 2 KB an export, ${CONNECTIONS} connections`
    report.heading(name)
    const load = (port: number) => otlpLoad(service, signal, port, seconds)
    await compare({
      ...{ service, report, rounds, name, target: TARGET, eventsPerCall: ITEMS_PER_EXPORT },
      ours: load(service.port),
      baseline: { name: 'bare', load: load(bare.port) },
      run: runOtlpLoad,
    })
  }
}

export function otlpLoad(
  { agents }: Pick<BenchService, 'agents'>,
  signal: 'traces' | 'logs',
  port: number,
  seconds: number,
): Load {
  const requests = [{ path: `/otlp/v1/${signal}`, key: agents[0]!.key, body: '' }]
  return { port, connections: CONNECTIONS, seconds, requests }
}

/** The exports are made where they are sent. */
export function runOtlpLoad(load: Load): Promise<LoadResult> {
  return runScript('otlp-load.ts', load) as Promise<LoadResult>
}
