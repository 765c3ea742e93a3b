import { encodeAttributes, encodeValue } from './attributes.ts'
import type { AnyValue, Attributes } from './telemetry.ts'

const SHARE_MIN = 64
/** Room for `truncated`, the list of the names of cut values. */
const NAMES_BYTES = 2_048
const NAMES_MAX = 20
const NAME_LENGTH_MAX = 80

/** Members of a payload that the service adds to the attributes. */
export type ExtraMembers = (readonly [name: string, value: AnyValue])[]

/**
 * The payload of an event as JSON: the attributes as sent, and the extra members. An attribute takes precedence over an
 * extra member of the same name. Above `bytesMax` the largest values are cut, and the last attributes dropped if there
 * are too many; `truncated` lists the names of both.
 */
export function encodePayload(attributes: Attributes, extra: ExtraMembers, bytesMax: number): string {
  if (isSurelyLarger(attributes, bytesMax)) return encodeAttributes(cut(attributes, extra, bytesMax))
  let text = ''
  for (const [name, value] of attributes) text += head(text, name) + encodeValue(value)
  for (const [name, value] of extra) if (!attributes.has(name)) text += head(text, name) + encodeValue(value)
  text = text === '' ? '{}' : `${text}}`
  // A UTF-16 unit takes at most 3 bytes.
  if (text.length * 3 <= bytesMax || Buffer.byteLength(text) <= bytesMax) return text
  return encodeAttributes(cut(attributes, extra, bytesMax))
}

/** Found without encoding the strings: one may be megabytes long. */
function isSurelyLarger(attributes: Attributes, bytesMax: number): boolean {
  let length = 0
  for (const [name, value] of attributes) {
    length += name.length + (typeof value === 'string' ? value.length : 1)
    if (length > bytesMax) return true
  }
  return false
}

/** What comes before the value of the next member. One string, because each piece of a payload costs. */
function head(before: string, name: string): string {
  return before === '' ? `{${nameText(name).slice(1)}` : nameText(name)
}

/** Member names as JSON with the comma and the colon, cached because exports repeat the same few. */
const nameTexts = new Map<string, string>()
const NAME_TEXTS_MAX = 2_000

function nameText(name: string): string {
  let text = nameTexts.get(name)
  if (text === undefined) {
    text = `,${JSON.stringify(name)}:`
    if (nameTexts.size < NAME_TEXTS_MAX && name.length <= NAME_LENGTH_MAX) nameTexts.set(name, text)
  }
  return text
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
    const member = memberOf(name, value, bytesMax)
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
  const bytes = Buffer.byteLength(nameText(name)) + Buffer.byteLength(text)
  return { name, value, bytes, text: isString ? '' : text }
}
