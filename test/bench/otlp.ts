import { compare } from './compare.ts'
import type { Load } from './load.ts'
import { ITEMS_PER_EXPORT } from './otlp-bodies.ts'
import type { Bench } from './parts.ts'
import { type BenchService, startScript } from './servers.ts'

const TARGET = 0.5
const CONNECTIONS = 8

/** OpenTelemetry exports, durable when acknowledged, compared with a server that only decodes them. */
export async function measureOtlp(bench: Bench): Promise<void> {
  const { service, seconds } = bench
  const bare = await startScript('bare-otlp-server.ts', [])
  for (const signal of ['traces', 'logs'] as const)
    await compare(bench, {
      name: `otlp: ${signal}, ${ITEMS_PER_EXPORT} of 2 KB an export, ${CONNECTIONS} connections`,
      ...{ target: TARGET, eventsPerCall: ITEMS_PER_EXPORT },
      ours: otlpLoad(service, signal, service.port, seconds),
      baseline: { name: 'bare', load: otlpLoad(service, signal, bare.port, seconds) },
    })
}

export function otlpLoad(
  { agents }: Pick<BenchService, 'agents'>,
  otlp: 'traces' | 'logs',
  port: number,
  seconds: number,
): Load {
  const requests = [{ path: `/otlp/v1/${otlp}`, key: agents[0]!.key, body: '' }]
  return { port, connections: CONNECTIONS, seconds, requests, otlp }
}
