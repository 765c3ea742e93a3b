import { startsWith } from '../../base/http/json-scan.ts'
import { lookup } from '../../base/lookup.ts'
import { SCORE_CELLS as CELLS } from '../../stores/journal/rows.ts'
import { SCORE_SOURCES } from '../../stores/journal/scores.ts'
import { SCORE_LENGTHS } from './schema.ts'

/** Names and values in a score's JSON that the scan recognizes by their bytes, without decoding strings. */

const encode = (text: string) => new TextEncoder().encode(text)

/** The members of a score, the most frequent first. */
export const FIELDS = [
  ...(['run_id', 'name', 'value', 'id', 'source', 'label', 'comment', 'text', 'metadata', 'created_at'] as const),
  ...(['task_id', 'event_id', 'session_id'] as const),
]
type Field = (typeof FIELDS)[number]

/** The cells of the fields that are texts. */
const TEXTS = lookup({
  id: CELLS.id,
  name: CELLS.name,
  event_id: CELLS.eventId,
  session_id: CELLS.sessionId,
  label: CELLS.label,
  text: CELLS.text,
  comment: CELLS.comment,
})

export interface KnownName {
  readonly field: Field
  /** With its closing quote. */
  readonly word: Uint8Array
  /** A bit of its own. */
  readonly bit: number
  /** The cells of its range, for texts; otherwise -1. */
  readonly cell: number
  /** Of a text, in characters. */
  readonly min: number
  readonly max: number
  /** The next name that begins with the same byte. */
  readonly next: KnownName | undefined
}

const NAME_BY_BYTE: (KnownName | undefined)[] = new Array(256).fill(undefined)
for (const field of FIELDS.toReversed()) {
  const word = encode(`${field}"`)
  const bit = 1 << FIELDS.indexOf(field)
  const cell = TEXTS.get(field) ?? -1
  const min = field === 'comment' ? 0 : 1
  const max = SCORE_LENGTHS[field as keyof typeof SCORE_LENGTHS] ?? 0
  NAME_BY_BYTE[word[0]] = { field, word, bit, cell, min, max, next: NAME_BY_BYTE[word[0]] }
}

const NAME_BY_FIELD = lookup(
  Object.fromEntries(NAME_BY_BYTE.flatMap((known) => listOf(known)).map((known) => [known.field, known])),
)

function listOf(known: KnownName | undefined): KnownName[] {
  return known === undefined ? [] : [known, ...listOf(known.next)]
}

/** The field of this name. */
export function knownName(name: string): KnownName | undefined {
  return NAME_BY_FIELD.get(name)
}

/** The field whose name begins at `at`, after its opening quote; undefined for other names, and for those with escapes. */
export function knownNameAt(bytes: Uint8Array, at: number): KnownName | undefined {
  let known = NAME_BY_BYTE[bytes[at]]
  while (known !== undefined && !startsWith(bytes, at, known.word)) known = known.next
  return known
}

const SOURCE_WORDS = SCORE_SOURCES.map((source) => encode(`"${source}"`))

/** The number of the source between these offsets, quotes included: its index in `SCORE_SOURCES` from 1; 0 if it is none. */
export function sourceAt(bytes: Uint8Array, at: number, end: number): number {
  for (let i = 0; i < SOURCE_WORDS.length; i++)
    if (SOURCE_WORDS[i].length === end - at && startsWith(bytes, at, SOURCE_WORDS[i])) return i + 1
  return 0
}
