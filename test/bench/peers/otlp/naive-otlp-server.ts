import { createLog } from '../../../../src/base/log.ts'
import { startEmbeddedClickHouse } from '../../../../src/stores/clickhouse/engine/supervisor.ts'
import { TracesData } from '../../../support/otlp-proto.ts'

/*
 * A minimal collector: decodes each export and inserts its spans into ClickHouse before it answers. The engine is the one
 * that the service embeds, and the table has the columns that OpenTelemetry's exporter for ClickHouse creates for spans.
 * `argv`: data directory, and 1 if inserts are to be synced. Prints its port.
 */
interface Attribute {
  readonly key: string
  readonly value: { readonly stringValue?: string; readonly intValue?: { toString(): string } }
}

interface Span {
  readonly traceId: Uint8Array
  readonly spanId: Uint8Array
  readonly parentSpanId: Uint8Array
  readonly name: string
  readonly kind: number
  readonly startTimeUnixNano: { toString(): string }
  readonly endTimeUnixNano: { toString(): string }
  readonly attributes: readonly Attribute[]
}

interface Export {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] }
    readonly scopeSpans: readonly { readonly spans: readonly Span[] }[]
  }[]
}

const [dataDir, synced] = Bun.argv.slice(2) as [string, string]
const TABLE = `create table default.spans (
    Timestamp DateTime64(9), TraceId String, SpanId String, ParentSpanId String, SpanName LowCardinality(String),
    SpanKind LowCardinality(String), ServiceName LowCardinality(String), Duration UInt64,
    ResourceAttributes Map(LowCardinality(String), String), SpanAttributes Map(LowCardinality(String), String))
  engine = MergeTree order by (ServiceName, SpanName, toDateTime(Timestamp))
  settings fsync_after_insert = ${synced}, fsync_part_directory = ${synced}`

const engine = await startEmbeddedClickHouse({ dataDir, log: createLog('error') })

async function ask(statement: string, body: string): Promise<string> {
  const headers = { 'x-clickhouse-user': engine.username, 'x-clickhouse-key': engine.password }
  const url = `${engine.url}/?query=${encodeURIComponent(statement)}`
  const response = await fetch(url, { method: 'POST', headers, body })
  const text = await response.text()
  if (!response.ok) throw new Error(text)
  return text
}

function rowsOf({ resourceSpans }: Export): string {
  return resourceSpans
    .flatMap(({ resource, scopeSpans }) => {
      const shared = mapOf(resource.attributes)
      return scopeSpans.flatMap(({ spans }) => spans.map((span) => JSON.stringify(rowOf(span, shared))))
    })
    .join('\n')
}

function rowOf(span: Span, resource: Record<string, string>): object {
  const start = BigInt(span.startTimeUnixNano.toString())
  return {
    Timestamp: start.toString(),
    TraceId: Buffer.from(span.traceId).toString('hex'),
    SpanId: Buffer.from(span.spanId).toString('hex'),
    ParentSpanId: Buffer.from(span.parentSpanId).toString('hex'),
    SpanName: span.name,
    SpanKind: `${span.kind}`,
    ServiceName: resource['service.name'] ?? '',
    Duration: (BigInt(span.endTimeUnixNano.toString()) - start).toString(),
    ResourceAttributes: resource,
    SpanAttributes: mapOf(span.attributes),
  }
}

function mapOf(attributes: readonly Attribute[]): Record<string, string> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue?.toString() ?? '']),
  )
}

await ask(TABLE, '')
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  development: false,
  async fetch(request) {
    if (request.method === 'GET') return new Response(await ask('select count() from default.spans', ''))
    const rows = rowsOf(TracesData.decode(await request.bytes()) as unknown as Export)
    await ask('INSERT INTO default.spans FORMAT JSONEachRow', rows)
    return new Response(null, { headers: { 'content-type': 'application/x-protobuf' } })
  },
})
process.on('SIGTERM', async () => {
  await server.stop(true)
  await engine.stop()
  process.exit(0)
})
process.stdout.write(`${server.port}\n`)
