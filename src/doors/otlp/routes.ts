import { Elysia } from 'elysia'
import { ApiError, invalid } from '../../base/errors.ts'
import { bearerToken, encodedBearerToken } from '../../base/http/bearer.ts'
import { inSlices } from '../../base/http/shared-slice.ts'
import { SECURITY } from '../../tenants/keys/security.ts'
import { basicPassword, createReceiver, DOOR_STATE, HIDDEN, type ReceivedCall, withPositions } from '../kit.ts'
import { type ExportResult, placesOf } from '../traces/export-tally.ts'
import { spanTaskIds } from '../traces/ids.ts'
import { problemOf } from '../traces/mapping.ts'
import { detailsOfSpans } from '../traces/run-details.ts'
import type { Span } from '../traces/telemetry.ts'
import type { TraceDialect } from '../traces/trace-store.ts'
import type { TraceRoutesDeps } from '../traces/traces.ts'
import { openLogs, openMetrics, openTraces } from '../traces/wire/protobuf.ts'
import { LogIngest } from './log-ingest.ts'
import { encodingOf, errorResponse, exportResponse, type PartialSuccess } from './response.ts'

const OTLP: TraceDialect<Span> = {
  places: placesOf('span'),
  taskIds: spanTaskIds,
  hasChildRuns: true,
  nameOf: ({ name }) => name,
  problemOf,
  traceOf: (_caller, _traceId, spans) => ({ spans, detailsOf: (limits, now) => detailsOfSpans(spans, limits, now) }),
}

/**
 * OTLP/HTTP: reports of programs that are instrumented with OpenTelemetry (docs/opentelemetry.md).
 */
export function otlpRoutes({ guards, forwarder, traces: shared }: TraceRoutesDeps) {
  const { traces, json, decodeLimits } = shared
  const logs = new LogIngest(shared)
  const receive = createReceiver(
    { guards, forwarder, ...shared },
    {
      tokenOf,
      check(request) {
        if (encodingOf(request) === null) {
          throw invalid('header Content-Type', 'expected application/x-protobuf or application/json')
        }
      },
      challenge: 'Bearer, Basic',
      errorOf: (error, request) => errorResponse(encodingOf(request) ?? 'json', error),
    },
  )

  const answer = (signal: keyof typeof REJECTED, store: (call: ReceivedCall) => Promise<ExportResult>) =>
    receive(async (call) => {
      const { request, caller, body } = call
      const encoding = encodingOf(request) ?? 'json'
      const bytes = encoding === 'json' ? await json.convert(caller.workspaceId, body, signal) : body
      const result = await store({ ...call, body: bytes })
      return withPositions(exportResponse(encoding, { ...result, field: REJECTED[signal] }), result)
    })

  const storeTraces = answer('traces', async ({ caller, body, slice }) =>
    traces.storeExport(caller, await inSlices(slice, openTraces(body, decodeLimits)), OTLP, slice),
  )
  const storeLogs = answer('logs', async ({ caller, body, slice }) =>
    logs.store(caller, await inSlices(slice, openLogs(body, decodeLimits)), slice),
  )
  const rejectMetrics = answer('metrics', async ({ body, slice }) => {
    const opened = await inSlices(slice, openMetrics(body, decodeLimits))
    const { items, refusals } = await inSlices(slice, opened.decode())
    if (refusals.length > 0) throw new ApiError('PAYLOAD_TOO_LARGE', `body: metric: ${refusals[0].problem}`)
    return noMetrics(items.reduce((sum, points) => sum + points, 0))
  })

  return (
    new Elysia({ detail: { security: SECURITY.otlp } })
      .decorate(DOOR_STATE)
      // The address that the exporter of Langfuse's newer SDKs has.
      .post('/api/public/otel/v1/traces', storeTraces, HIDDEN)
      // For programs that are given a host and a port only.
      .post('/v1/traces', storeTraces, HIDDEN)
      .post('/v1/logs', storeLogs, HIDDEN)
      .post('/v1/metrics', rejectMetrics, HIDDEN)
      .post('/otlp/v1/traces', storeTraces, {
        parse: 'none',
        detail: detailOf('exportTraces', 'traces', 'A trace is a run; a span is a task and an event.'),
      })
      .post('/otlp/v1/logs', storeLogs, {
        parse: 'none',
        detail: detailOf('exportLogs', 'logs', 'A log record is an event of the run of its trace.'),
      })
      .post('/otlp/v1/metrics', rejectMetrics, {
        parse: 'none',
        detail: detailOf('exportMetrics', 'metrics', 'Not stored: all data points are rejected.'),
      })
  )
}

/** What says how many items of a signal were rejected. */
const REJECTED: Record<'traces' | 'logs' | 'metrics', PartialSuccess['field']> = {
  traces: 'rejectedSpans',
  logs: 'rejectedLogRecords',
  metrics: 'rejectedDataPoints',
}

function noMetrics(rejected: number): ExportResult {
  const message =
    rejected === 0 ? '' : 'metrics are not stored here; send traces and logs, or set OTEL_METRICS_EXPORTER=none'
  return { rejected, message, firstSeq: null, lastSeq: null }
}

/** The key from `X-API-Key`, `Bearer%20<key>` or Basic auth; undefined if the guard should read the bearer token itself. */
function tokenOf(request: Request): string | undefined {
  if (bearerToken(request) !== undefined) return undefined
  const key = request.headers.get('x-api-key')
  if (key !== null) return key.trim()
  return encodedBearerToken(request) ?? basicPassword(request)
}

const BINARY = { type: 'string' as const, format: 'binary' }

function detailOf(operationId: string, signal: string, what: string) {
  const content = (of: string) => ({
    'application/x-protobuf': { schema: BINARY },
    'application/json': { schema: { type: 'object' as const, description: of } },
  })
  return {
    tags: ['OpenTelemetry'],
    operationId,
    summary: `Export ${signal} over OTLP`,
    description:
      `OTLP/HTTP in protobuf or JSON, optionally compressed with gzip or zstd. ${what} A repeated export changes nothing. ` +
      'A 200 says that everything that was not rejected is on stable storage; X-First-Seq and X-Last-Seq are the ' +
      'positions of the events. The key is a bearer token, X-API-Key or the password of Basic auth.',
    requestBody: { required: true, content: content(`An export request of OTLP for ${signal}.`) },
    responses: {
      200: { description: 'Stored, apart from what partial_success says.', content: content('The export response.') },
      default: { description: 'A google.rpc.Status, without the envelope.', content: content('code and message.') },
    },
  }
}
