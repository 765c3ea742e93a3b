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
  let text = '{'
  for (const [name, value] of attributes)
    text += `${text.length === 1 ? '' : ','}${nameText(name)}${encodeValue(value)}`
  for (const [name, value] of extra) {
    if (!attributes.has(name)) text += `${text.length === 1 ? '' : ','}${nameText(name)}${encodeValue(value)}`
  }
  text += '}'
  // A UTF-16 unit takes at most 3 bytes.
  if (text.length * 3 <= bytesMax || Buffer.byteLength(text) <= bytesMax) return text
  return encodeAttributes(cut(new Map([...extra, ...attributes]), bytesMax))
}

/** Member names as JSON with the colon, cached because exports repeat the same few. */
const nameTexts = new Map<string, string>()
const NAME_TEXTS_MAX = 2_000

function nameText(name: string): string {
  let text = nameTexts.get(name)
  if (text === undefined) {
    text = `${JSON.stringify(name)}:`
    if (nameTexts.size < NAME_TEXTS_MAX && name.length <= NAME_LENGTH_MAX) nameTexts.set(name, text)
  }
  return text
}

interface Member {
  readonly name: string
  readonly value: AnyValue
  /** The size of name and value as JSON. */
  readonly bytes: number
}

function cut(members: Attributes, bytesMax: number): Attributes {
  const all = [...members].map(([name, value]) => ({ name, value, bytes: bytesOf(name, value) }))
  const room = bytesMax - Math.min(NAMES_BYTES, bytesMax / 2)
  let share = bytesMax
  const total = () => all.reduce((sum, { bytes }) => sum + Math.min(bytes, share), 0)
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
  const names = truncated.slice(0, NAMES_MAX).map((name) => name.slice(0, NAME_LENGTH_MAX).toWellFormed())
  if (truncated.length > NAMES_MAX) names.push(`and ${truncated.length - NAMES_MAX} more`)
  if (Buffer.byteLength(JSON.stringify(names)) <= bytesMax - room - 20) kept.set('truncated', names)
  return kept
}

/** The start of the value as text, as much as fits into `share` bytes with the name; undefined if the name fills them. */
function cutValue({ name, value }: Member, share: number): string | undefined {
  const room = share - bytesOf(name, '')
  if (room < 0) return undefined
  const text = typeof value === 'string' ? value : encodeValue(value)
  let length = Math.min(text.length, room)
  for (;;) {
    const piece = text.slice(0, length).toWellFormed()
    const bytes = Buffer.byteLength(JSON.stringify(piece)) - 2
    if (bytes <= room) return piece
    length = Math.floor((length * room) / (bytes + 1))
  }
}

function bytesOf(name: string, value: AnyValue): number {
  return Buffer.byteLength(nameText(name)) + Buffer.byteLength(encodeValue(value)) + 1
}
