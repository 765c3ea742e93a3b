import type { ModelServer } from '../support/model-server.ts'
import type { SpawnedService } from '../support/service.ts'

/** One request, as large as its route allows. */
export interface LoopRequest {
  readonly method: string
  readonly path: string
  /** The campaign adds the key of the route, unless there is an `authorization`. */
  readonly headers: Record<string, string>
  readonly body: Uint8Array
}

/** The worst of a route in one respect: deep, wide, long, many, repeated, compressed. */
export interface LoopCase {
  readonly name: string
  /** As in the OpenAPI document; by default, the one that the request calls. */
  readonly route?: string
  /** A new request each time: a case is repeated when it stopped the loop. */
  request(): LoopRequest
  /** The status that proves that the request got as far as it should; 2xx unless given. `any`: all but a 5xx. */
  readonly status?: number | 'any'
}

/** A case that is more than one request, such as the messages of a WebSocket. */
export interface LoopExchange {
  readonly name: string
  /** As in the OpenAPI document: `GET /api/v1/live`. */
  readonly route: string
  /** What must be there first; not measured. */
  prepare?(): Promise<void>
  run(): Promise<{ readonly sent: number; readonly status: number | string }>
  /** As of {@link LoopCase}. */
  readonly status?: number | 'any'
}

export type AnyLoopCase = LoopCase | LoopExchange

/** What the cases refer to. */
export interface LoopContext {
  readonly service: SpawnedService
  readonly model: ModelServer
  readonly agentId: string
  readonly agentKey: string
  /** A run that runs, of the agent. */
  readonly runId: string
}

const encoder = new TextEncoder()

/** A request with a JSON body, or with text that is sent unchanged. */
export function sending(
  method: string,
  path: string,
  body?: string | object | Uint8Array,
  headers: Record<string, string> = {},
): LoopRequest {
  if (body === undefined) return { method, path, headers, body: new Uint8Array(0) }
  const bytes =
    body instanceof Uint8Array ? body : encoder.encode(typeof body === 'string' ? body : JSON.stringify(body))
  return { method, path, headers: { 'content-type': 'application/json', ...headers }, body: bytes }
}

export const MIB = 1024 * 1024

/** So many repetitions of `unit`, separated by commas, that the text has about `bytes` bytes. */
export function listOf(unit: string, bytes: number): string {
  const count = Math.max(1, Math.floor(bytes / (Buffer.byteLength(unit) + 1)))
  return `${`${unit},`.repeat(count - 1)}${unit}`
}

/** Nested to the limit of the service, from inside an object of a body. */
function nested(levels: number): string {
  return '['.repeat(levels) + ']'.repeat(levels)
}

/** Members with different names. */
export function membersOf(bytes: number, value = '0'): string {
  const members: string[] = []
  for (let length = 0, i = 0; length < bytes; i++) {
    const member = `"${i.toString(36)}":${value}`
    members.push(member)
    length += member.length + 1
  }
  return members.join(',')
}

/** JSON objects of about `bytes` bytes that are as hard to read as JSON can be, each in another way. */
export function hardObjects(bytes: number): Readonly<Record<string, string>> {
  const room = bytes - 100
  return {
    'numbers of a digit': `{"a":[${listOf('1', room)}]}`,
    'empty arrays': `{"a":[${listOf('[]', room)}]}`,
    'deep arrays': `{"a":[${listOf(nested(100), room)}]}`,
    members: `{${membersOf(room - 10)}}`,
    'one long number': `{"a":${'1'.repeat(room)}}`,
    'long fractions': `{"a":[${listOf(`0.${'123456789'.repeat(5)}e-300`, room)}]}`,
    escapes: `{"a":"${'\\u00e9\\"'.repeat(Math.floor(room / 8))}"}`,
    emoji: `{"a":"${'\u{1F600}'.repeat(Math.floor(room / 4))}"}`,
    spaces: `{"a":${' \n'.repeat(Math.floor(room / 2))}0}`,
  }
}
