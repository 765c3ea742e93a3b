import { Elysia } from 'elysia'
import { ApiError, invalid } from '../../base/errors.ts'
import { type BodyReader, HangUp } from '../../base/http/body.ts'
import type { BodyHold } from '../../base/http/body-budget.ts'
import { inSlices, type SharedSlice } from '../../base/http/shared-slice.ts'
import type { Forwarder } from '../../tenants/keys/forward.ts'
import type { Guards } from '../../tenants/keys/guards.ts'
import { SECURITY } from '../../tenants/keys/security.ts'
import { DecodeError, type DecodeLimits } from '../traces/telemetry.ts'
import { openItems } from './decode.ts'
import type { OpenAiTraces } from './ingest.ts'
import { errorResponse } from './response.ts'

interface OpenAiTracesRoutesDeps {
  readonly guards: Guards
  /** With the limit of exports (`otlp_bytes`). */
  readonly reader: BodyReader
  readonly forwarder: Forwarder
  readonly openAiTraces: Pick<OpenAiTraces, 'store'>
  readonly decodeLimits: DecodeLimits
  /** Shared by all exports that are being decoded and stored. */
  readonly slice: SharedSlice
  /** The error for the client when a store is unavailable; null for any other error. */
  readonly unavailableOf: (error: unknown) => ApiError | null
}

const JSON_TYPE = /^application\/json\s*(?:;|$)/i

/**
 * Traces of programs that use the OpenAI Agents SDK (docs/openai-agents.md). No envelope: OpenAI's API defines the answers.
 * Its exporter drops a batch after a 4xx answer, and repeats it after 429 and 5xx.
 */
export function openAiTracesRoutes(deps: OpenAiTracesRoutesDeps) {
  const { guards, reader, forwarder, openAiTraces, decodeLimits, unavailableOf } = deps

  const refuse = (error: unknown, request: Request): Response => {
    const refused =
      error instanceof ApiError
        ? error
        : error instanceof DecodeError
          ? new ApiError('VALIDATION_ERROR', error.message)
          : unavailableOf(error)
    // A defect: the envelope logs it and answers with the id of the request.
    if (refused === null) throw error
    const response = errorResponse(refused)
    const isUnread = refused.code === 'PAYLOAD_TOO_LARGE' && request.headers.has('content-length')
    if (refused instanceof HangUp || isUnread) response.headers.set('connection', 'close')
    return response
  }

  return new Elysia({ prefix: '/openai/v1', detail: { security: SECURITY.anyKey } })
    .decorate({ bodyHold: undefined as BodyHold | undefined })
    .post(
      '/traces/ingest',
      async (context) => {
        const { request, set } = context
        try {
          const headers = set.headers as Record<string, string | number>
          const { caller, body } = await guards.receive(request, headers, 'any', 'ingest', { reader })
          context.bodyHold = body.hold
          if (!JSON_TYPE.test(request.headers.get('content-type') ?? '')) {
            throw invalid('header Content-Type', 'expected application/json')
          }
          return await forwarder.carryOut(request, caller, body, async () => {
            const slice = deps.slice.of(caller.workspaceId)
            const bytes = await reader.inflateAsync(request, body)
            const opened = await inSlices(slice, openItems(bytes, decodeLimits))
            const stored = await openAiTraces.store(caller, opened, slice)
            const { rejected, message, items, firstSeq, lastSeq } = stored
            const others = `${items - rejected} of ${items} items are stored`
            const response =
              rejected === 0
                ? new Response(null, { status: 204 })
                : errorResponse(new ApiError('VALIDATION_ERROR', `${message}; ${others}`))
            if (firstSeq !== null) response.headers.set('x-first-seq', `${firstSeq}`)
            if (lastSeq !== null) response.headers.set('x-last-seq', `${lastSeq}`)
            return response
          })
        } catch (error) {
          return refuse(error, request)
        }
      },
      { parse: 'none', detail: INGEST },
    )
    .all(
      '/*',
      ({ request }) => {
        const { pathname } = new URL(request.url)
        const message = `Invalid URL (${request.method} ${pathname.slice(0, 200)}): only POST /openai/v1/traces/ingest exists here`
        return errorResponse(new ApiError('NOT_FOUND', message))
      },
      { parse: 'none', detail: { hide: true } },
    )
}

const INGEST = {
  tags: ['OpenAI Agents'],
  operationId: 'ingestOpenAiTraces',
  summary: 'Ingest traces of the OpenAI Agents SDK',
  description:
    'What the exporter of the SDK sends: traces and spans that have ended. A trace is a run, a span a task and an event. A ' +
    'repeated call changes nothing. If some items are invalid, the others are stored, and the error names the first ' +
    'one. X-First-Seq and X-Last-Seq are the positions of the events.',
  requestBody: {
    required: true,
    content: {
      'application/json': {
        schema: {
          type: 'object' as const,
          required: ['data'],
          properties: {
            data: { type: 'array' as const, items: { type: 'object' as const, description: 'A trace or a span.' } },
          },
        },
      },
    },
  },
  responses: {
    204: { description: 'Everything is on stable storage.' },
    default: {
      description: "An error in the shape of OpenAI's API, without the envelope.",
      content: { 'application/json': { schema: { type: 'object' as const, description: 'error.' } } },
    },
  },
}
