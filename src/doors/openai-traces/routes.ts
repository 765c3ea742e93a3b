import { ApiError, invalid } from '../../base/errors.ts'
import { inSlices } from '../../base/http/shared-slice.ts'
import { SECURITY } from '../../tenants/keys/security.ts'
import { jsonContent, jsonDoor, withPositions } from '../kit.ts'
import type { TraceRoutesDeps } from '../traces/traces.ts'
import { openItems } from './decode.ts'
import { createDialect } from './dialect.ts'
import { errorBody } from './response.ts'

const JSON_TYPE = /^application\/json\s*(?:;|$)/i

/**
 * Traces of programs that use the OpenAI Agents SDK (docs/openai-agents.md). No envelope: OpenAI's API defines the answers.
 * Its exporter drops a batch after a 4xx answer, and repeats it after 429 and 5xx.
 */
export function openAiTracesRoutes({ guards, forwarder, traces }: TraceRoutesDeps) {
  const dialect = createDialect()
  const door = jsonDoor(
    { guards, forwarder, ...traces },
    {
      path: '/openai/v1',
      security: SECURITY.anyKey,
      challenge: 'Bearer',
      check({ headers }) {
        if (!JSON_TYPE.test(headers.get('content-type') ?? ''))
          throw invalid('header Content-Type', 'expected application/json')
      },
      errorBody,
      help: 'only POST /openai/v1/traces/ingest is',
    },
  )
  const ingest = door.receive(async ({ request, caller, body, slice }) => {
    const bytes = await traces.json.convert(caller.workspaceId, body, 'values')
    const opened = await inSlices(slice, openItems(bytes, traces.decodeLimits))
    const stored = await traces.traces.storeExport(caller, opened, dialect, slice)
    const { rejected, message, param, items } = stored
    if (rejected === 0) return withPositions(new Response(null, { status: 204 }), stored)
    const others = `${items - rejected} of ${items} items are stored`
    const error = new ApiError('VALIDATION_ERROR', `${message}; ${others}`, { param })
    return withPositions(door.answers.errorOf(error, request), stored)
  })
  return door.routes.post('/traces/ingest', ingest, { parse: 'none', detail: INGEST })
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
      content: jsonContent('error.'),
    },
  },
}
