import { Elysia } from 'elysia'
import { ApiError, invalid } from '../../base/errors.ts'
import { bearerToken, encodedBearerToken } from '../../base/http/bearer.ts'
import { type BodyReader, HangUp } from '../../base/http/body.ts'
import type { BodyHold } from '../../base/http/body-budget.ts'
import { inSlices, type SharedSlice, type Slice } from '../../base/http/shared-slice.ts'
import type { Forwarder } from '../../tenants/keys/forward.ts'
import type { Guards } from '../../tenants/keys/guards.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import { SECURITY } from '../../tenants/keys/security.ts'
import type { ExportResult } from '../traces/export-tally.ts'
import { DecodeError, type DecodeLimits, ItemTooLarge } from '../traces/telemetry.ts'
import { openLogsJson, openMetricsJson, openTracesJson } from './json.ts'
import type { LogIngest } from './log-ingest.ts'
import { openLogs, openMetrics, openTraces } from './protobuf.ts'
import { type Encoding, encodingOf, errorResponse, exportResponse, type PartialSuccess } from './response.ts'
import type { SpanIngest } from './span-ingest.ts'

interface OtlpRoutesDeps {
  readonly guards: Guards
  /** With the limit of exports (`otlp_bytes`). */
  readonly reader: BodyReader
  readonly forwarder: Forwarder
  readonly spans: Pick<SpanIngest, 'store'>
  readonly logs: Pick<LogIngest, 'store'>
  readonly decodeLimits: DecodeLimits
  /** Shared by all exports that are being decoded and stored. */
  readonly slice: SharedSlice
  /** The error for the client when a store is unavailable; null for any other error. */
  readonly unavailableOf: (error: unknown) => ApiError | null
}

/** An export whose key has been checked, decompressed. */
interface Received {
  readonly caller: Caller
  readonly body: Uint8Array
  readonly encoding: Encoding
  readonly slice: Slice
}

type Store = (received: Received) => Promise<ExportResult>

interface Context {
  readonly request: Request
  readonly set: { readonly headers: unknown }
  bodyHold: BodyHold | undefined
}

/**
 * OTLP/HTTP: reports of programs that are instrumented with OpenTelemetry (docs/opentelemetry.md). These routes have no
 * guard plugin, because keys may arrive in other headers, and no envelope, because OTLP defines the responses.
 */
export function otlpRoutes(deps: OtlpRoutesDeps) {
  const { spans, logs, decodeLimits } = deps
  const receive = receiver(deps)

  const storeTraces = (context: Context) =>
    receive(context, 'rejectedSpans', async ({ caller, body, encoding, slice }) => {
      const open = encoding === 'json' ? openTracesJson : openTraces
      return spans.store(caller, await inSlices(slice, open(body, decodeLimits)), slice)
    })

  const storeLogs = (context: Context) =>
    receive(context, 'rejectedLogRecords', async ({ caller, body, encoding, slice }) => {
      const open = encoding === 'json' ? openLogsJson : openLogs
      return logs.store(caller, await inSlices(slice, open(body, decodeLimits)), slice)
    })

  const rejectMetrics = (context: Context) =>
    receive(context, 'rejectedDataPoints', async ({ body, encoding, slice }) => {
      const open = encoding === 'json' ? openMetricsJson : openMetrics
      const opened = await inSlices(slice, open(body, decodeLimits))
      const { items, refusals } = await inSlices(slice, opened.decode())
      if (refusals.length > 0) throw new ApiError('PAYLOAD_TOO_LARGE', `body: metric: ${refusals[0].problem}`)
      return noMetrics(items.reduce((sum, points) => sum + points, 0))
    })

  const hidden = { parse: 'none' as const, detail: { hide: true } }
  return (
    new Elysia({ detail: { security: SECURITY.otlp } })
      .decorate({ bodyHold: undefined as BodyHold | undefined })
      // The address that the exporter of Langfuse's newer SDKs has.
      .post('/api/public/otel/v1/traces', storeTraces, hidden)
      // For programs that are given a host and a port only.
      .post('/v1/traces', storeTraces, hidden)
      .post('/v1/logs', storeLogs, hidden)
      .post('/v1/metrics', rejectMetrics, hidden)
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

/** Receives exports: checks key and body, and answers in the shapes of OTLP. */
function receiver(deps: OtlpRoutesDeps) {
  const { guards, reader, forwarder, unavailableOf } = deps
  const receive = async (context: Context, field: PartialSuccess['field'], store: Store): Promise<Response> => {
    const { request, set } = context
    const encoding = encodingOf(request.headers.get('content-type'))
    try {
      const headers = set.headers as Record<string, string | number>
      const options = { token: tokenOf(request), reader }
      const { caller, body } = await guards.receive(request, headers, 'any', 'ingest', options)
      context.bodyHold = body.hold
      if (encoding === null) {
        throw invalid('header Content-Type', 'expected application/x-protobuf or application/json')
      }
      return await forwarder.carryOut(request, caller, body, async () => {
        const slice = deps.slice.of(caller.workspaceId)
        const received = { caller, body: await reader.inflateAsync(request, body), encoding, slice }
        const { rejected, message, firstSeq, lastSeq } = await store(received)
        const response = exportResponse(encoding, { field, rejected, message })
        if (firstSeq !== null) response.headers.set('x-first-seq', `${firstSeq}`)
        if (lastSeq !== null) response.headers.set('x-last-seq', `${lastSeq}`)
        return response
      })
    } catch (error) {
      return refuse(error, encoding ?? 'json', request)
    }
  }

  const refuse = (error: unknown, encoding: Encoding, request: Request): Response => {
    const refused =
      error instanceof ApiError
        ? error
        : error instanceof DecodeError
          ? new ApiError('VALIDATION_ERROR', error.message)
          : error instanceof ItemTooLarge
            ? new ApiError('PAYLOAD_TOO_LARGE', `body: ${error.message}`)
            : unavailableOf(error)
    // A defect: the envelope logs it and answers with the id of the request.
    if (refused === null) throw error
    const response = errorResponse(encoding, refused)
    const isUnread = refused.code === 'PAYLOAD_TOO_LARGE' && request.headers.has('content-length')
    if (refused instanceof HangUp || isUnread) response.headers.set('connection', 'close')
    return response
  }

  return receive
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

/** The password of Basic auth; undefined if the request has none. */
export function basicPassword(request: Request): string | undefined {
  const basic = /^Basic +([A-Za-z0-9+/=]+) *$/i.exec(request.headers.get('authorization') ?? '')?.[1]
  if (basic === undefined) return undefined
  const decoded = Buffer.from(basic, 'base64').toString()
  return decoded.slice(decoded.indexOf(':') + 1)
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
