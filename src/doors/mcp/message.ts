import { parseJson } from '../../base/http/json-reader.ts'
import {
  CLOSE_BRACKET,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  skipSpace,
  skipValue,
  terminated,
  visitMembers,
} from '../../base/http/json-scan.ts'
import type { Slice } from '../../base/http/shared-slice.ts'
import { isObject } from '../../base/json-object.ts'
import { RawJson } from '../../base/raw-json.ts'
import { INVALID_REQUEST, RpcError } from './errors.ts'

/** Messages of one batch. Batches exist in revision 2025-03-26 only. */
const BATCH_MAX = 20
const LEVELS_MAX = 200
/** A message without its content. The package checks and copies each member of it, which takes a few microseconds. */
const FRAME_BYTES_MAX = 64 * 1024
/** The members of `params` that may be large. */
const CONTENT = ['arguments', 'inputResponses'] as const

/** The body of a request: one message of JSON-RPC, or a batch of them. */
interface Received {
  /** As parsed JSON, without the arguments of tools and prompts: what the package is given. */
  readonly body: unknown
  readonly messages: readonly Message[]
}

/** What the service itself reads of a message. Every member is as the client has sent it. */
export interface Message {
  readonly id: unknown
  readonly method: unknown
  /** `params.name`. */
  readonly name: unknown
  /** Whether the client asks for notifications of progress. */
  readonly wantsProgress: boolean
  /** The text of a member of `params`: exact, where parsed numbers are rounded. Undefined if there is none. */
  rawMember(member: string): RawJson | undefined
  /** The text of `params`. */
  readonly params: RawJson | undefined
}

/**
 * In two steps: of 10 MiB each takes tens of milliseconds.
 * @param slice for a large body
 * @throws ApiError VALIDATION_ERROR for what is no JSON; RpcError for what is no message that the server reads
 */
export async function readMessages(bytes: Uint8Array, maxDepth: number, slice: Slice | undefined): Promise<Received> {
  const body = parseJson(bytes, maxDepth)
  await slice?.yield()
  const source = terminated(bytes)
  const start = skipSpace(source, 0)
  if (!Array.isArray(body)) return { body, messages: [messageOf(body, source, start)] }
  if (body.length > BATCH_MAX)
    throw new RpcError(INVALID_REQUEST, `body: expected at most ${BATCH_MAX} messages; got ${body.length}`)
  const ids = body.map((message) => membersOf(message).id).filter((id) => id !== undefined)
  // Answers are told apart by them.
  if (new Set(ids).size < ids.length)
    throw new RpcError(INVALID_REQUEST, 'body: expected a different id in each message')
  const starts = elementsOf(source, start)
  return { body, messages: body.map((message, index) => messageOf(message, source, starts[index])) }
}

function messageOf(value: unknown, source: Uint8Array, start: number): Message {
  const { id, method, params } = membersOf(value)
  const { name, _meta } = membersOf(params)
  // Each of both is looked through once, because a message may have 10 MiB.
  const own = membersAt(source, start)
  let inner: Members | undefined
  const inParams = (member: string) => {
    inner ??= membersAt(source, own.places.get('params')?.start)
    return inner.places.get(member)
  }
  const textAt = (place: Place | undefined) =>
    place === undefined
      ? undefined
      : new RawJson(Buffer.from(source.buffer, source.byteOffset + place.start, place.end - place.start).toString())
  if (source.length > FRAME_BYTES_MAX) {
    let bytes = own.end - start
    for (const member of CONTENT) {
      const place = inParams(member)
      if (place !== undefined) bytes -= place.end - place.start
    }
    if (bytes > FRAME_BYTES_MAX)
      throw new RpcError(
        INVALID_REQUEST,
        `body: expected at most ${FRAME_BYTES_MAX} bytes beside ${CONTENT.join(' and ')}`,
      )
  }
  if (isObject(params) && isObject(params.arguments)) params.arguments = {}
  return {
    id,
    method,
    name,
    wantsProgress: membersOf(_meta).progressToken !== undefined,
    get params() {
      return textAt(own.places.get('params'))
    },
    rawMember: (member) => textAt(inParams(member)),
  }
}

/** The members of an object; none of anything else. */
function membersOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

interface Place {
  readonly start: number
  readonly end: number
}

interface Members {
  readonly places: ReadonlyMap<string, Place>
  /** Where the value that has them ends. */
  readonly end: number
}

/** Where the members of the value at `at` are: none of anything but an object. The JSON is valid, and no object has a member twice. */
function membersAt(source: Uint8Array, at: number | undefined): Members {
  const places = new Map<string, Place>()
  if (at === undefined) return { places, end: 0 }
  if (source[at] !== OPEN_BRACE) return { places, end: skipValue(source, at, LEVELS_MAX) }
  const end = visitMembers(source, at, (name, nameEnd, start, valueEnd) => {
    places.set(JSON.parse(Buffer.from(source.subarray(name, nameEnd)).toString()), { start, end: valueEnd })
  })
  return { places, end }
}

/** Where the elements of the array at `at` begin. */
function elementsOf(source: Uint8Array, at: number): number[] {
  const starts: number[] = []
  if (source[at] !== OPEN_BRACKET) return starts
  at = skipSpace(source, at + 1)
  while (source[at] !== CLOSE_BRACKET) {
    starts.push(at)
    at = skipSpace(source, skipValue(source, at, LEVELS_MAX))
    if (source[at] === COMMA) at = skipSpace(source, at + 1)
  }
  return starts
}
