import { Elysia } from 'elysia'
import { ApiError, STATUS_OF } from '../base/errors.ts'
import { retryAfterOf } from '../base/http/answer.ts'
import { type BodyReader, HangUp } from '../base/http/body.ts'
import type { BodyHold } from '../base/http/body-budget.ts'
import type { SharedSlice, Slice } from '../base/http/shared-slice.ts'
import { isBadData, unavailableOf } from '../stores/postgres/connect.ts'
import type { Forwarder } from '../tenants/keys/forward.ts'
import type { Guards } from '../tenants/keys/guards.ts'
import type { Caller } from '../tenants/keys/schema.ts'

/**
 * What all doors for the protocols of others do alike: receive a call, charge it, and refuse it, or some of its items. They
 * have no guard plugin, because keys may come in other headers, and no envelope, because the protocols define the answers.
 */

/** What the routes of a door that stores reports need. */
export interface DoorDeps {
  readonly guards: Pick<Guards, 'receive'>
  /** With the limit of the door's bodies. */
  readonly reader: BodyReader
  readonly forwarder: Forwarder
  /** Shared by all calls whose bodies are being decoded and stored. */
  readonly slice: SharedSlice
}

export interface DoorContext {
  readonly request: Request
  readonly set: { readonly headers: unknown }
  bodyHold: BodyHold | undefined
}

/** What the routes of a door keep about a request. */
export const DOOR_STATE = { bodyHold: undefined as BodyHold | undefined }

/** A call whose key has been checked. */
export interface ReceivedCall {
  readonly request: Request
  readonly caller: Caller
  /** Decompressed. */
  readonly body: Uint8Array
  readonly slice: Slice
}

const ACCESS = { audience: 'keys', budget: 'ingest' } as const

/** How a protocol says that a call is refused. */
interface Refusals {
  readonly errorOf: (error: ApiError, request: Request) => Response
  /** `WWW-Authenticate` of the answer to a call without a valid key. */
  readonly challenge: string
}

interface Protocol extends Refusals {
  /** The key; undefined if the guard should read the bearer token itself. */
  readonly tokenOf?: (request: Request) => string | undefined
  /** Checks the headers of a call whose key is known. @throws ApiError */
  readonly check?: (request: Request) => void
}

/** Returns what makes the handler of a route: it answers with what `work` returns, or an error in the shape of the protocol. */
export function createReceiver({ guards, reader, forwarder, slice }: DoorDeps, protocol: Protocol) {
  const { tokenOf, check } = protocol
  return (work: (call: ReceivedCall) => Promise<Response>) =>
    async (context: DoorContext): Promise<Response> => {
      const { request } = context
      try {
        const options = { token: tokenOf?.(request), reader }
        const { caller, body } = await guards.receive(request, headersOf(context), ACCESS, options)
        context.bodyHold = body.hold
        check?.(request)
        return await forwarder.carryOut(request, caller, body, async () => {
          const inflated = await reader.inflateAsync(request, body)
          return work({ request, caller, body: inflated, slice: slice.of(caller.workspaceId) })
        })
      } catch (error) {
        return refuse(error, request, protocol)
      }
    }
}

interface JsonProtocol extends Omit<Protocol, 'errorOf'> {
  /** What the paths of all routes begin with. */
  readonly path: string
  readonly security: Record<string, string[]>[]
  /** The body of the answer to a call that is refused. */
  readonly errorBody: (error: ApiError) => object
  /** For the refusal of a call to another address. */
  readonly help: string
}

/** Options of routes that read their own bodies and are not documented. */
export const HIDDEN = { parse: 'none', detail: { hide: true } } as const

/** What a door that speaks JSON has besides its routes. */
export function jsonDoor(deps: DoorDeps, { path, security, help, errorBody, ...protocol }: JsonProtocol) {
  const answers: Refusals = {
    ...protocol,
    errorOf: (error) => jsonAnswer(STATUS_OF[error.code], JSON.stringify(errorBody(error))),
  }
  const routes = new Elysia({ prefix: path, detail: { security } }).decorate(DOOR_STATE).all(
    '/*',
    ({ request }) => {
      const { pathname } = new URL(request.url)
      const message = `${request.method} ${pathname.slice(0, 200)} is not supported here; ${help}`
      return answers.errorOf(new ApiError('NOT_FOUND', message), request)
    },
    HIDDEN,
  )
  return { routes, answers, receive: createReceiver(deps, { ...protocol, ...answers }) }
}

export function jsonAnswer(status: number, body: string): Response {
  return new Response(body, { status, headers: { 'content-type': 'application/json' } })
}

/** For the document: JSON, in the format of others. */
export function jsonContent(description: string) {
  return { 'application/json': { schema: { type: 'object' as const, description } } }
}

/** The headers of the answer, for the guards. */
export function headersOf({ set }: Pick<DoorContext, 'set'>): Record<string, string | number> {
  return set.headers as Record<string, string | number>
}

/**
 * The answer for an error, with what every protocol has in its headers.
 * @throws the error if it is a defect: the envelope logs it, and answers with the id of the request
 */
export function refuse(error: unknown, request: Request, { errorOf, challenge }: Refusals): Response {
  const refused = error instanceof ApiError ? error : unavailableOf(error)
  if (refused === null) throw error
  const response = errorOf(refused, request)
  if (refused.code === 'UNAUTHENTICATED') response.headers.set('www-authenticate', challenge)
  const retryAfter = retryAfterOf(refused)
  if (retryAfter !== undefined) response.headers.set('retry-after', retryAfter)
  const isUnread = refused.code === 'PAYLOAD_TOO_LARGE' && request.headers.has('content-length')
  if (refused instanceof HangUp || isUnread) response.headers.set('connection', 'close')
  return response
}

/** Errors that the content of an item causes: sending it again would not help. */
const REFUSALS = new Set(['VALIDATION_ERROR', 'FORBIDDEN', 'NOT_FOUND', 'CONFLICT', 'PAYLOAD_TOO_LARGE'])

/** Stores items of a call. An error that their content has caused is theirs, and the others are stored all the same. */
export async function attempt(store: () => Promise<void>, onRefused: (refused: ApiError) => void): Promise<void> {
  try {
    await store()
  } catch (error) {
    const refused = refusalOf(error)
    if (refused === null) throw error
    onRefused(refused)
  }
}

/** Null for an error that is not about the content. */
function refusalOf(error: unknown): ApiError | null {
  if (error instanceof ApiError) return REFUSALS.has(error.code) ? error : null
  return isBadData(error) ? new ApiError('VALIDATION_ERROR', 'the database cannot store one of its values') : null
}

/** Bytes that cost as much as an event: a call with few large items, or none, is work as well. */
export const BYTES_PER_EVENT = 16 * 1024

/** What to charge for a call, in events. */
export function costOf(items: number, bytes: number): number {
  return Math.max(items, Math.ceil(bytes / BYTES_PER_EVENT))
}

/** Where a call was stored: the positions of its first and last event, which `wait_for` takes. */
export function withPositions(
  response: Response,
  { firstSeq, lastSeq }: { readonly firstSeq: number | null; readonly lastSeq: number | null },
): Response {
  if (firstSeq !== null) response.headers.set('x-first-seq', `${firstSeq}`)
  if (lastSeq !== null) response.headers.set('x-last-seq', `${lastSeq}`)
  return response
}

/** The password of Basic auth; undefined if the request has none. */
export function basicPassword(request: Request): string | undefined {
  const basic = /^Basic +([A-Za-z0-9+/=]+) *$/i.exec(request.headers.get('authorization') ?? '')?.[1]
  if (basic === undefined) return undefined
  const decoded = Buffer.from(basic, 'base64').toString()
  return decoded.slice(decoded.indexOf(':') + 1)
}
