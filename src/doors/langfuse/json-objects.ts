import { readString } from '../../base/http/json-reader.ts'
import { OPEN_BRACE, QUOTE, visitMembers } from '../../base/http/json-scan.ts'
import { CANONICAL_BYTES, parseCanonicalBytes, parseTimestamp } from '../../base/timestamp.ts'

/** JSON in a buffer. Valid, and followed by at least one more byte, unless it was checked before. */
export interface JsonRange {
  readonly text: Buffer
  readonly start: number
  readonly end: number
}

/** Longer texts are no times. */
const TIME_BYTES_MAX = 80

/** The time that a JSON value is, Unix milliseconds; null for any other value. */
export function timeIn({ text, start, end }: JsonRange): number | null {
  if (text[start] !== QUOTE || end - start > TIME_BYTES_MAX) return null
  const time = end - start === CANONICAL_BYTES + 2 ? parseCanonicalBytes(text, start + 1) : null
  return time ?? parseTimestamp(readString(text, start, end))
}

/** Larger ones are not united. */
const UNITED_BYTES_MAX = 64 * 1024

/** The members of an object that others are added to. */
export class ObjectUnion {
  private readonly members = new Map<string, string>()
  private bytes = 0

  /** Null if the value is no object, or too large. */
  static of(value: JsonRange | null): ObjectUnion | null {
    const union = new ObjectUnion()
    return value === null || union.add(value, true) === 'refused' ? null : union
  }

  /** Adds members; those of the same name are replaced if `replaces`. Refuses a value that is no object, or makes it too large. */
  add({ text, start, end }: JsonRange, replaces: boolean): 'changed' | 'unchanged' | 'refused' {
    if (text[start] !== OPEN_BRACE || this.bytes + end - start > UNITED_BYTES_MAX) return 'refused'
    const json = Buffer.from(`${text.toString('utf8', start, end)}\0`)
    let isChanged = false
    visitMembers(json, 0, (name, nameEnd, value, valueEnd) => {
      const key = json.toString('utf8', name, nameEnd)
      const before = this.members.get(key)
      if (before !== undefined && !replaces) return
      const later = json.toString('utf8', value, valueEnd)
      if (later === before) return
      isChanged = true
      this.bytes += later.length - (before?.length ?? -key.length - 2)
      this.members.set(key, later)
    })
    return isChanged ? 'changed' : 'unchanged'
  }

  encode(): Buffer {
    return Buffer.from(`{${[...this.members].map(([name, value]) => `${name}:${value}`).join(',')}}`)
  }
}
