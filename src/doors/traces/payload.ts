import { CLOSE_BRACE, OPEN_BRACE } from '../../base/http/json-scan.ts'
import type { Bytes } from '../../stores/clickhouse/bytes.ts'
import { encodeValue, writeValue } from './json-writer.ts'
import { type AnyValue, type Attributes, type Range, Utf8Text } from './telemetry.ts'

const SHARE_MIN = 64
/** Room for `truncated`, the list of the names of cut values. */
const NAMES_BYTES = 2_048
const NAMES_MAX = 20
const NAME_LENGTH_MAX = 80

/** Members of a payload that the service adds to the attributes. */
export type ExtraMembers = (readonly [name: string, value: AnyValue])[]

/**
 * Writes the payload of an event as JSON: the attributes as sent, and the extra members. An attribute takes precedence
 * over an extra member of the same name. Above `bytesMax` the largest values are cut, and the last attributes dropped if
 * there are too many; `truncated` lists the names of both.
 */
export function writePayload(out: Bytes, attributes: Attributes, extra: ExtraMembers, bytesMax: number): Range {
  const start = out.length
  if (!isSurelyLarger(attributes, bytesMax) && !isSurelyLarger(extra, bytesMax)) {
    for (const [name, value] of attributes) writeMember(out, name, value)
    for (const [name, value] of extra) if (!attributes.has(name)) writeMember(out, name, value)
    if (out.length === start) out.byte(OPEN_BRACE)
    // Each member begins with a comma; that of the first becomes the brace.
    else out.buffer[start] = OPEN_BRACE
    out.byte(CLOSE_BRACE)
    if (out.length - start <= bytesMax) return { start, end: out.length }
    out.length = start
  }
  writeValue(out, cut(attributes, extra, bytesMax))
  return { start, end: out.length }
}

/** Found without encoding the strings: one may be megabytes long. */
function isSurelyLarger(members: Iterable<readonly [string, AnyValue]>, bytesMax: number): boolean {
  let length = 0
  for (const [name, value] of members) {
    length += name.length + (typeof value === 'string' || value instanceof Utf8Text ? value.length : 1)
    if (length > bytesMax) return true
  }
  return false
}

function writeMember(out: Bytes, name: string, value: AnyValue): void {
  const bytes = memberName(name)
  out.copy(bytes, 0, bytes.length)
  writeValue(out, value)
}

/** Member names as JSON with the comma and the colon, cached because exports repeat the same few. */
const memberNames = new Map<string, Buffer>()
const MEMBER_NAMES_MAX = 2_000

function memberName(name: string): Buffer {
  let bytes = memberNames.get(name)
  if (bytes === undefined) {
    bytes = Buffer.from(`,${JSON.stringify(name)}:`)
    if (memberNames.size < MEMBER_NAMES_MAX && name.length <= NAME_LENGTH_MAX) memberNames.set(name, bytes)
  }
  return bytes
}

interface Member {
  readonly name: string
  readonly value: AnyValue
  /** The size of name and value as JSON; less than that, but more than fits, for a name or string that is too long. */
  readonly bytes: number
  /** The value as JSON, unless it is a string. */
  readonly text: string
}

function cut(attributes: Attributes, extra: ExtraMembers, bytesMax: number): Attributes {
  const room = bytesMax - Math.min(NAMES_BYTES, bytesMax / 2)
  const all: Member[] = []
  const dropped: string[] = []
  let least = 0
  const add = (name: string, value: AnyValue) => {
    // Even the smallest share of each of them fills the room: what comes last is not encoded.
    if (least > room) return void dropped.push(name)
    const member = memberOf(name, value instanceof Utf8Text ? `${value}` : value, bytesMax)
    least += Math.min(member.bytes, SHARE_MIN)
    all.push(member)
  }
  for (const [name, value] of extra) if (!attributes.has(name)) add(name, value)
  for (const [name, value] of attributes) add(name, value)
  let share = bytesMax
  const total = () => all.reduce((sum, { bytes }) => sum + Math.min(bytes, share), 0)
  if (dropped.length > 0) share = SHARE_MIN
  while (share > SHARE_MIN && total() > room) share = Math.floor(share / 2)
  const kept: Attributes = new Map()
  const truncated: string[] = []
  let used = 0
  for (const member of all) {
    const value = member.bytes <= share ? member.value : cutValue(member, share)
    const bytes = value === undefined ? 0 : Math.min(member.bytes, share)
    if (value === undefined || used + bytes > room) truncated.push(member.name)
    else {
      if (value !== member.value) truncated.push(member.name)
      kept.set(member.name, value)
      used += bytes
    }
  }
  const listed = [...truncated, ...dropped.slice(0, NAMES_MAX)].slice(0, NAMES_MAX)
  const names = listed.map((name) => name.slice(0, NAME_LENGTH_MAX).toWellFormed())
  const more = truncated.length + dropped.length - names.length
  if (more > 0) names.push(`and ${more} more`)
  if (Buffer.byteLength(JSON.stringify(names)) <= bytesMax - room - 20) kept.set('truncated', names)
  return kept
}

/** The start of the value as text, as much as fits into `share` bytes with the name; undefined if the name fills them. */
function cutValue({ name, value, text: encoded }: Member, share: number): string | undefined {
  if (name.length > share) return undefined
  const room = share - memberOf(name, '', share).bytes
  if (room < 0) return undefined
  const text = typeof value === 'string' ? value : encoded
  let length = Math.min(text.length, room)
  for (;;) {
    const piece = text.slice(0, length).toWellFormed()
    const bytes = Buffer.byteLength(JSON.stringify(piece)) - 2
    if (bytes <= room) return piece
    length = Math.floor((length * room) / (bytes + 1))
  }
}

function memberOf(name: string, value: AnyValue, bytesMax: number): Member {
  const isString = typeof value === 'string'
  if (name.length > bytesMax || (isString && value.length > bytesMax))
    return { name, value, bytes: bytesMax + 1, text: '' }
  const text = encodeValue(value)
  const bytes = memberName(name).length + Buffer.byteLength(text)
  return { name, value, bytes, text: isString ? '' : text }
}
