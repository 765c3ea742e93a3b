import type { Steps } from '../../base/http/shared-slice.ts'
import { isObject } from '../../base/json-object.ts'
import { parseObject } from '../otlp/json.ts'
import { JsonOutlineReader } from '../otlp/json-outline.ts'
import { type ItemDecoder, type ItemRange, opened } from '../otlp/outline.ts'
import type { OpenedExport } from '../traces/telemetry.ts'
import {
  type Attributes,
  DecodeBudget,
  type DecodeLimits,
  RESOURCE_BYTES_MAX,
  type Resource,
  type Span,
  STATUS_ERROR,
} from '../traces/telemetry.ts'
import { describe } from './span-data.ts'
import { readMembers } from './values.ts'

/** Where an item is in `data`. */
interface Placed {
  readonly place: number
}

/** `object: "trace"`, sent when a trace begins. */
export interface TraceHead extends Placed {
  readonly traceId: string
  readonly workflowName: string
  readonly groupId: string
  readonly metadata: Attributes
}

/** `object: "trace.span"`, in the form that the mapping of spans takes. */
export interface PlacedSpan extends Span, Placed {}

/** An item that cannot be stored. */
interface BadItem extends Placed {
  readonly member: string
  readonly problem: string
}

export type Item =
  | { readonly kind: 'trace'; readonly trace: TraceHead }
  | { readonly kind: 'span'; readonly span: PlacedSpan }
  | { readonly kind: 'bad'; readonly bad: BadItem }

/** Printable ASCII without spaces: the SDK's own have a prefix and hex digits, and programs may choose others. */
const ID = /^[!-~]{1,255}$/
const ID_EXPECTED = 'expected 1 to 255 printable ASCII characters'
const INSTANT = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:?\d\d)?$/
const TIME_EXPECTED = 'expected a time in ISO 8601, or null'
const NO_RESOURCE: Resource = { attributes: new Map() }

/**
 * Finds the items of a body `{data: [...]}` without decoding them.
 * @throws DecodeError, ApiError PAYLOAD_TOO_LARGE; so does decoding
 */
export function* openItems(body: Uint8Array, limits: DecodeLimits): Steps<OpenedExport<Item>> {
  const budget = new DecodeBudget(limits)
  const names = { groups: '', scopes: '', items: 'data' }
  const outline = yield* new JsonOutlineReader(body, names, limits, budget).readFlat()
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const places = new Map<ItemRange, number>()
  for (const { scopes } of outline.groups) {
    for (const { items } of scopes) for (const range of items) places.set(range, places.size)
  }
  const decoder: ItemDecoder<Item> = {
    budget,
    resource() {},
    scopeName: () => '',
    item: (range) => {
      const bytes = range.end - range.start
      return readItem(parseObject(text, range), { place: places.get(range) ?? 0, bytes }, budget)
    },
  }
  return opened(outline, body.length, decoder, limits)
}

type Json = Record<string, unknown>

function* readItem(
  item: Json,
  { place, bytes }: Placed & { readonly bytes: number },
  budget: DecodeBudget,
): Steps<Item> {
  const bad = (member: string, problem: string): Item => ({ kind: 'bad', bad: { place, member, problem } })
  if (item.object === 'trace') {
    if (!isId(item.id)) return bad('id', ID_EXPECTED)
    if (bytes > RESOURCE_BYTES_MAX) return bad('metadata', `expected a trace of at most ${RESOURCE_BYTES_MAX} bytes`)
    const metadata: Attributes = isObject(item.metadata) ? yield* readMembers(item.metadata, budget) : new Map()
    const trace = { traceId: item.id, workflowName: textOf(item.workflow_name), groupId: textOf(item.group_id) }
    return { kind: 'trace', trace: { ...trace, metadata, place } }
  }
  if (item.object !== 'trace.span') return bad('object', 'expected "trace" or "trace.span"')
  const { id, trace_id: traceId, parent_id: parentId, started_at: startedAt, ended_at: endedAt } = item
  if (!isId(id)) return bad('id', ID_EXPECTED)
  if (!isId(traceId)) return bad('trace_id', ID_EXPECTED)
  if (!isAbsent(parentId) && !isId(parentId)) return bad('parent_id', `${ID_EXPECTED}, or null`)
  const startNano = nanoOf(startedAt)
  const endNano = nanoOf(endedAt)
  if (startNano === null) return bad('started_at', TIME_EXPECTED)
  if (endNano === null) return bad('ended_at', TIME_EXPECTED)
  if (!isObject(item.span_data)) return bad('span_data', 'expected an object')
  const described = describe(yield* readMembers(item.span_data, budget))
  if (described === null) return bad('span_data.type', 'expected a text')
  const { name, attributes } = described
  const error = isObject(item.error) ? yield* readMembers(item.error, budget) : null
  if (error !== null) attributes.set('error', error)
  const span: PlacedSpan = {
    ...{ place, resource: NO_RESOURCE, scope: '', traceId, spanId: id, kind: 0 },
    parentSpanId: isId(parentId) ? parentId : '',
    ...{ name, startNano, endNano, attributes, events: [], links: [] },
    statusCode: error === null ? 0 : STATUS_ERROR,
    statusMessage: textOf(error?.get('message')),
  }
  return { kind: 'span', span }
}

function isId(value: unknown): value is string {
  return typeof value === 'string' && ID.test(value)
}

function isAbsent(value: unknown): boolean {
  return value === null || value === undefined
}

/** Unix nanoseconds; 0 if there is none, null for anything that is no time. */
function nanoOf(value: unknown): number | null {
  if (isAbsent(value)) return 0
  if (typeof value !== 'string' || !INSTANT.test(value)) return null
  // A time without a zone is in UTC, as Python's SDK writes it.
  const ms = Date.parse(/(?:[Zz]|[+-]\d\d:?\d\d)$/.test(value) ? value : `${value}Z`)
  return Number.isNaN(ms) || ms < 0 ? null : ms * 1e6
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
