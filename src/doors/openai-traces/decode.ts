import type { Steps } from '../../base/http/shared-slice.ts'
import { textAt, valueAt } from '../traces/attributes.ts'
import {
  type Attributes,
  type DecodeLimits,
  type OpenedExport,
  RESOURCE_BYTES_MAX,
  type Resource,
  type Span,
  STATUS_ERROR,
} from '../traces/telemetry.ts'
import { openValues } from '../traces/wire/protobuf.ts'
import { describe, mapOf } from './span-data.ts'

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
  readonly traceId: ''
  readonly member: string
  readonly problem: string
}

export type Item = TraceHead | PlacedSpan | BadItem

/** Printable ASCII without spaces: the SDK's own have a prefix and hex digits, and programs may choose others. */
const ID = /^[!-~]{1,255}$/
const ID_EXPECTED = 'expected 1 to 255 printable ASCII characters'
const INSTANT = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:?\d\d)?$/
const TIME_EXPECTED = 'expected a time in ISO 8601, or null'
const NO_RESOURCE: Resource = { attributes: new Map() }

/**
 * Finds the items of a list `data` without decoding them.
 * @param body in protobuf, as `toProtobuf` has written it
 * @throws ApiError VALIDATION_ERROR, PAYLOAD_TOO_LARGE; so does decoding
 */
export function openItems(body: Uint8Array, limits: DecodeLimits): Steps<OpenedExport<Item>> {
  let count = 0
  return openValues(body, limits, (value, bytes) => itemOf(mapOf(value) ?? new Map(), { place: count++, bytes }))
}

function itemOf(item: Attributes, { place, bytes }: Placed & { readonly bytes: number }): Item {
  const bad = (member: string, problem: string): Item => ({ place, traceId: '', member, problem })
  const at = (name: string) => valueAt(item, name)
  const kind = at('object')
  const id = at('id')
  if (kind === 'trace') {
    if (!isId(id)) return bad('id', ID_EXPECTED)
    if (bytes > RESOURCE_BYTES_MAX) return bad('metadata', `expected a trace of at most ${RESOURCE_BYTES_MAX} bytes`)
    const metadata = mapOf(item.get('metadata')) ?? new Map()
    const workflowName = textAt(item, 'workflow_name')
    return { place, traceId: id, workflowName, groupId: textAt(item, 'group_id'), metadata }
  }
  if (kind !== 'trace.span') return bad('object', 'expected "trace" or "trace.span"')
  const traceId = at('trace_id')
  const parentId = at('parent_id')
  if (!isId(id)) return bad('id', ID_EXPECTED)
  if (!isId(traceId)) return bad('trace_id', ID_EXPECTED)
  if (!isAbsent(parentId) && !isId(parentId)) return bad('parent_id', `${ID_EXPECTED}, or null`)
  const startNano = nanoOf(at('started_at'))
  const endNano = nanoOf(at('ended_at'))
  if (startNano === null) return bad('started_at', TIME_EXPECTED)
  if (endNano === null) return bad('ended_at', TIME_EXPECTED)
  const data = mapOf(item.get('span_data'))
  if (data === undefined) return bad('span_data', 'expected an object')
  const described = describe(data)
  if (described === null) return bad('span_data.type', 'expected a text')
  const { name, attributes } = described
  const error = mapOf(item.get('error'))
  if (error !== undefined) attributes.set('error', error)
  return {
    place,
    resource: NO_RESOURCE,
    scope: '',
    traceId,
    spanId: id,
    kind: 0,
    parentSpanId: isId(parentId) ? parentId : '',
    name,
    startNano,
    endNano,
    attributes,
    events: [],
    links: [],
    statusCode: error === undefined ? 0 : STATUS_ERROR,
    statusMessage: error === undefined ? '' : textAt(error, 'message'),
  }
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
