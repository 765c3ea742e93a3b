import packageJson from '../../../package.json' with { type: 'json' }
import { ApiError, invalid } from '../../base/errors.ts'
import { bearerToken } from '../../base/http/bearer.ts'
import { checkUtf8 } from '../../base/http/body.ts'
import { isObject, parsedJson } from '../../base/json-object.ts'
import type { Guards } from '../../tenants/keys/guards.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import { SECURITY } from '../../tenants/keys/security.ts'
import {
  basicPassword,
  type DoorContext,
  type DoorDeps,
  HIDDEN,
  headersOf,
  jsonContent,
  jsonDoor,
  refuse,
} from '../kit.ts'
import { answer, batchAnswer, errorBody } from './answers.ts'
import type { LangfuseIngest } from './ingest.ts'
import { SCORE_BYTES_MAX } from './scores.ts'

interface LangfuseRoutesDeps extends DoorDeps {
  readonly guards: Pick<Guards, 'receive' | 'admit'>
  readonly ingest: Pick<LangfuseIngest, 'store'>
  /** The name of the caller's workspace. */
  readonly workspaceName: (caller: Caller) => Promise<string>
}

const READING = { audience: 'keys', budget: 'reads' } as const
const MEDIA_BYTES_MAX = 16 * 1024

/**
 * The routes that the Langfuse SDKs call (docs/langfuse.md).
 */
export function langfuseRoutes(deps: LangfuseRoutesDeps) {
  const { guards, ingest } = deps
  const { routes, receive, answers } = jsonDoor(deps, {
    path: '/api/public',
    security: SECURITY.otlp,
    challenge: 'Basic',
    tokenOf,
    errorBody,
    help: 'see docs/langfuse.md',
  })

  const admit = (execute: (caller: Caller) => Promise<Response>) => async (context: DoorContext) => {
    const { request } = context
    try {
      return await execute(await guards.admit(request, headersOf(context), READING, { token: tokenOf(request) }))
    } catch (error) {
      return refuse(error, request, answers)
    }
  }

  const storeBatch = receive(async ({ caller, body, slice }) => {
    checkUtf8(body)
    return batchAnswer(await ingest.store(caller, body, slice))
  })
  const storeScore = receive(async ({ caller, body, slice }) => {
    const [{ id, error }] = await ingest.store(caller, batchOfScore(body), slice)
    if (error !== null) throw error
    return answer({ id })
  })
  const acceptMedia = receive(async ({ body }) => answer({ mediaId: mediaIdOf(body), uploadUrl: null }))
  const listProjects = admit(async (caller) => {
    const name = await deps.workspaceName(caller)
    return answer({ data: [{ id: caller.workspaceId, name, metadata: {} }] })
  })

  return routes
    .post('/ingestion', storeBatch, { parse: 'none', detail: INGESTION })
    .post('/scores', storeScore, HIDDEN)
    .post('/media', acceptMedia, HIDDEN)
    .get('/health', () => answer({ status: 'OK', version: packageJson.version }), HIDDEN)
    .get('/projects', listProjects, HIDDEN)
}

/** The secret key of the SDK is the key; its public key may be anything. */
function tokenOf(request: Request): string | undefined {
  return bearerToken(request) === undefined ? basicPassword(request) : undefined
}

/** A body that is built, unlike a batch. */
function parsedMember(body: Uint8Array, bytesMax: number): unknown {
  if (body.length > bytesMax) throw new ApiError('PAYLOAD_TOO_LARGE', `body: expected at most ${bytesMax} bytes`)
  return parsedJson(Buffer.from(body).toString())
}

/** A score as a batch of one, so that it goes the same way. */
function batchOfScore(body: Uint8Array): Uint8Array {
  checkUtf8(body)
  const score = parsedMember(body, SCORE_BYTES_MAX)
  if (!isObject(score)) throw invalid('body', 'expected a score as a JSON object')
  const id = typeof score.id === 'string' && score.id !== '' ? score.id : Bun.randomUUIDv7()
  const event = { id, type: 'score-create', timestamp: new Date().toISOString(), body: { ...score, id } }
  return Buffer.from(JSON.stringify({ batch: [event] }))
}

/** The id that the SDKs compute themselves. Without a URL for the upload they take the file for uploaded. */
function mediaIdOf(body: Uint8Array): string {
  const media = parsedMember(body, MEDIA_BYTES_MAX)
  const hash = isObject(media) ? media.sha256Hash : undefined
  if (typeof hash !== 'string' || hash === '') throw invalid('sha256Hash', 'expected the SHA-256 of the file in base64')
  return hash.slice(0, 22).replaceAll('+', '-').replaceAll('/', '_')
}

const INGESTION = {
  tags: ['Langfuse'],
  operationId: 'ingestLangfuseBatch',
  summary: 'Report a batch of a Langfuse SDK',
  description:
    'Traces, observations and scores as the Langfuse SDKs send them, up to 4.5 MB. The key is the secret key of the SDK: ' +
    'the password of Basic auth. A repeated batch changes nothing. Every event without an error is on stable storage.',
  requestBody: { required: true, content: jsonContent('A batch of events.') },
  responses: {
    207: {
      description: 'The result of every event: successes and errors.',
      content: jsonContent('successes and errors.'),
    },
    default: { description: 'An error, without the envelope.', content: jsonContent('message and error.') },
  },
}
