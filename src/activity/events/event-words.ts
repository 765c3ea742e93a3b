import { startsWith } from '../../base/http/json-scan.ts'
import { LEVELS } from '../../stores/journal/levels.ts'
import { RESERVED_TYPE_PREFIXES } from './schema.ts'

/** Names and values in an event's JSON that the scan recognizes by their bytes, without decoding strings. */

const encode = (text: string) => new TextEncoder().encode(text)
const LEVEL_WORDS = LEVELS.map((level) => encode(`"${level}"`))
const RESERVED_WORDS = RESERVED_TYPE_PREFIXES.map(encode)
const FIELDS = ['type', 'payload', 'level', 'occurred_at', 'id', 'task_id'] as const
type Field = (typeof FIELDS)[number]

interface KnownName {
  readonly field: Field
  /** With its closing quote. */
  readonly word: Uint8Array
  /** The next name that begins with the same byte. */
  readonly next: KnownName | undefined
}
/** The fields of an event by the first byte of their names; the earlier ones of {@link FIELDS} are tried first. */
const NAME_BY_BYTE: (KnownName | undefined)[] = new Array(256).fill(undefined)
for (const field of FIELDS.toReversed()) {
  const word = encode(`${field}"`)
  NAME_BY_BYTE[word[0]] = { field, word, next: NAME_BY_BYTE[word[0]] }
}

/** The field whose name begins at `at`, after its opening quote; undefined for other names, and for those with escapes. */
export function knownNameAt(bytes: Uint8Array, at: number): KnownName | undefined {
  let known = NAME_BY_BYTE[bytes[at]]
  while (known !== undefined && !startsWith(bytes, at, known.word)) known = known.next
  return known
}

/** The number of the level between these offsets, quotes included: its index in `LEVELS` from 1; 0 if it is none. */
export function levelAt(bytes: Uint8Array, at: number, end: number): number {
  for (let i = 0; i < LEVEL_WORDS.length; i++) {
    if (LEVEL_WORDS[i].length === end - at && startsWith(bytes, at, LEVEL_WORDS[i])) return i + 1
  }
  return 0
}

/** Whether callers must not report events of this type. */
export function isReserved(type: string): boolean {
  return RESERVED_TYPE_PREFIXES.some((prefix) => type.startsWith(prefix))
}

/** Whether the type at `at` begins like a reserved one. Escapes are not decoded: see {@link isReserved}. */
export function mayBeReserved(bytes: Uint8Array, at: number): boolean {
  for (const word of RESERVED_WORDS) if (startsWith(bytes, at, word)) return true
  return false
}
