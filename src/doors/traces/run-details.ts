import { AGENT_WITHOUT_SERVICE } from '../../base/conventions/names.ts'
import type { Steps } from '../../base/http/shared-slice.ts'
import type { Limits } from '../../base/limits.ts'
import { RawJson } from '../../base/raw-json.ts'
import type { Bytes } from '../../stores/clickhouse/bytes.ts'
import { firstText, resourceText } from './attributes.ts'
import { writeInput, writeOutput } from './content.ts'
import { agentNameOf, sessionOf, tagsOf, userOf } from './conventions.ts'
import { encodeValue, textFrom } from './json-writer.ts'
import { cleanText, isRoot, toMs } from './mapping.ts'
import { type ExtraMembers, writePayload } from './payload.ts'
import type { Attributes, LogRecord, Resource, Span } from './telemetry.ts'

/** What an export says about a run, apart from its ids. */
export interface RunDetails {
  /** The agent that the run belongs to, unless the export is sent with an agent key. */
  readonly agentName: string
  /** Unix milliseconds. */
  readonly startedAt: number
  readonly externalUserId: string | null
  readonly sessionId: string | null
  readonly tags: readonly string[]
  readonly metadata: RawJson
  readonly input: RawJson | null
}

/** OpenTelemetry's own default for `service.name`, to which SDKs add the name of the program: no name of an agent. */
const UNKNOWN_SERVICE = 'unknown_service'
/** Of an agent. */
export const NAME_LENGTH_MAX = 200
const METADATA_BYTES_MAX = 65_536
const RESOURCE_BYTES_MAX = METADATA_BYTES_MAX - 4_096

/** @param spans of one trace, at least one: there may be a hundred thousand, and a list of tags in each */
export function* detailsOfSpans(spans: readonly Span[], limits: Limits, now: number): Steps<RunDetails> {
  const root = spans.find(isRoot)
  const ordered = root === undefined ? spans : [root, ...spans]
  const first = ordered[0]
  const all = [...ordered.map(({ attributes }) => attributes), first.resource.attributes]
  const named = (root === undefined ? null : agentNameOf(root.attributes)) ?? namedService(first.resource)
  const agentName = named ?? (yield* firstOf(all, agentWithoutService)) ?? (root?.name || null)
  return {
    agentName: runAgentName(agentName, first.resource),
    startedAt: earliestStart(spans, now),
    input: root === undefined ? null : inputOf(root.attributes, limits),
    ...(yield* sharedDetails(all, first.resource, limits)),
  }
}

/** In Unix milliseconds; `now` if no span says when it started. */
export function earliestStart(spans: readonly Span[], now: number): number {
  let start = Number.POSITIVE_INFINITY
  for (const { startNano } of spans) if (startNano > 0 && startNano < start) start = startNano
  return start === Number.POSITIVE_INFINITY ? now : toMs(start)
}

/** The input in the attributes of a span; null if there is none. */
export function inputOf(attributes: Attributes, limits: Limits): RawJson | null {
  return rawJson((out) => writeInput(out, attributes, limits.run_input_bytes))
}

/** @param records of one run, at least one */
export function* detailsOfLogs(records: readonly LogRecord[], startedAt: number, limits: Limits): Steps<RunDetails> {
  const { resource } = records[0]
  const all = records.map(({ attributes }) => attributes)
  return {
    agentName: runAgentName(null, resource),
    startedAt,
    input: null,
    ...(yield* sharedDetails([...all, resource.attributes], resource, limits)),
  }
}

function* sharedDetails(all: readonly Attributes[], resource: Resource, limits: Limits) {
  const sessionId = yield* firstOf(all, sessionOf)
  const user = yield* firstOf(all, userOf)
  const tags = (yield* firstOf(all, someTags)) ?? []
  return {
    sessionId: sessionId ? cleanText(sessionId, limits.external_id_length) : null,
    externalUserId: user ? cleanText(user, limits.external_id_length) : null,
    tags: cleanTags(tags, limits),
    metadata: metadataOf(resource),
  }
}

export function cleanTags(tags: readonly string[], limits: Limits): string[] {
  return tags.slice(0, limits.tags).map((tag) => cleanText(tag, limits.tag_length))
}

function* firstOf<T>(all: readonly Attributes[], read: (attributes: Attributes) => T | null): Steps<T | null> {
  for (const attributes of all) {
    const value = read(attributes)
    if (value !== null) return value
    yield
  }
  return null
}

function someTags(attributes: Attributes): readonly string[] | null {
  const tags = tagsOf(attributes)
  return tags.length === 0 ? null : tags
}

function agentWithoutService(attributes: Attributes): string | null {
  return firstText(attributes, AGENT_WITHOUT_SERVICE)
}

/** The name of the service; null if nobody has named it. */
function namedService({ attributes }: Resource): string | null {
  const service = firstText(attributes, ['service.name'])
  return service?.startsWith(UNKNOWN_SERVICE) ? null : service
}

export function runAgentName(agentName: string | null, { attributes }: Resource): string {
  return cleanText(agentName ?? firstText(attributes, ['service.name']) ?? UNKNOWN_SERVICE, NAME_LENGTH_MAX)
}

/** Escapes that Postgres rejects when it reads JSON: NUL and surrogates. */
const REFUSED_ESCAPES = /\\u(?:0000|d[89a-f][0-9a-f]{2})/gi

function metadataOf(resource: Resource): RawJson {
  const text = '{"source":"opentelemetry"}'
  if (resource.attributes.size === 0) return new RawJson(text)
  return new RawJson(`${text.slice(0, -1)},"resource":${resourceMember(resource)}}`)
}

/** Attributes as JSON that Postgres can store, cut if they are too large for metadata. */
export function metadataMember(attributes: Attributes, text = encodeValue(attributes)): string {
  return storable(isLargeMember(text) ? payloadText(attributes, [], RESOURCE_BYTES_MAX) : text)
}

function isLargeMember(text: string): boolean {
  // A UTF-16 unit takes at most 3 bytes.
  return text.length * 3 > RESOURCE_BYTES_MAX && Buffer.byteLength(text) > RESOURCE_BYTES_MAX
}

const resourceMembers = new WeakMap<Resource, string>()

/** Encoded once for all runs of an export. */
function resourceMember(resource: Resource): string {
  let text = resourceMembers.get(resource)
  if (text === undefined) {
    text = metadataMember(resource.attributes, resourceText(resource))
    resourceMembers.set(resource, text)
  }
  return text
}

function payloadText(attributes: Attributes, extra: ExtraMembers, bytesMax: number): string {
  return textFrom((out) => writePayload(out, attributes, extra, bytesMax))
}

/** What `write` writes; null if that is nothing. */
function rawJson(write: (out: Bytes) => void): RawJson | null {
  const text = textFrom(write)
  return text === '' ? null : new RawJson(text)
}

/** JSON text without what Postgres rejects. */
export function storable(text: string): string {
  return text.replace(REFUSED_ESCAPES, '\\ufffd')
}

/** How a run ends, from its root span. */
export interface RunEnd {
  readonly to: 'completed' | 'failed'
  readonly output: RawJson | null
  readonly errorMessage: string | null
  readonly errorDetail: RawJson | null
  /** Unix milliseconds. */
  readonly at: number
}

/** @param answer has the output if the span has none */
export function endOf(
  { attributes }: Span,
  completedAt: number,
  errorMessage: string | null,
  limits: Limits,
  answer?: Attributes,
): RunEnd {
  const outputOf = (of: Attributes) => rawJson((out) => writeOutput(out, of, limits.run_output_bytes))
  return runEnd(outputOf(attributes) ?? (answer === undefined ? null : outputOf(answer)), errorMessage, completedAt)
}

/** @param errorMessage null for a run that has not failed */
export function runEnd(output: RawJson | null, errorMessage: string | null, at: number): RunEnd {
  const said = output ?? new RawJson('{}')
  return errorMessage === null
    ? { to: 'completed', output: said, errorMessage, errorDetail: null, at }
    : { to: 'failed', output: null, errorMessage, errorDetail: said, at }
}
