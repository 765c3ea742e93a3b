import { readString } from '../../base/http/json-reader.ts'
import { CLOSE_BRACE, OPEN_BRACE, OPEN_BRACKET, QUOTE, skipValue } from '../../base/http/json-scan.ts'
import type { Bytes } from '../../stores/clickhouse/bytes.ts'
import { headOf, writeStart } from '../traces/content.ts'
import type { Range } from '../traces/telemetry.ts'
import type { JsonRange } from './json-objects.ts'

/** A longer text is not unpacked: reading it would take long. */
const UNPACKED_BYTES_MAX = 1024 * 1024
const UNPACKED_DEPTH_MAX = 100

/**
 * Writes the input or output of an observation as that of a span (`traces/content.ts`), from the JSON that was sent. A string
 * that is itself a JSON object or array, as some SDKs send them, is taken for that. Above `bytesMax` only the start is kept.
 */
export function writeContent(out: Bytes, sent: JsonRange, bytesMax: number): Range {
  const value = unpacked(sent) ?? sent
  const start = out.length
  const { text, start: from, end } = value
  const head = headOf(text, from)
  if (end - from + head.length + 1 > bytesMax) {
    writeStart(out, text.toString('utf8', from, Math.min(end, from + bytesMax)), bytesMax)
  } else {
    out.text(head)
    out.copy(text, from, end)
    if (head !== '') out.byte(CLOSE_BRACE)
  }
  return { start, end: out.length }
}

/** The JSON object or array in a string; null if it is another text. */
function unpacked({ text, start, end }: JsonRange): JsonRange | null {
  const [quote, first] = [text[start], text[start + 1]]
  if (quote !== QUOTE || (first !== OPEN_BRACE && first !== OPEN_BRACKET) || end - start > UNPACKED_BYTES_MAX)
    return null
  const json = Buffer.from(`${readString(text, start, end).trim()}\0`)
  try {
    return skipValue(json, 0, UNPACKED_DEPTH_MAX) === json.length - 1
      ? { text: json, start: 0, end: json.length - 1 }
      : null
  } catch {
    return null
  }
}

/** The start of a value as a JSON string of at most so many bytes. */
export function startOf({ text, start, end }: JsonRange, bytesMax: number): string {
  // Escaping makes a byte up to six times as long.
  const length = Math.max(0, Math.floor(bytesMax / 6) - 2)
  // The first character of what is cut may have lost its other bytes.
  return JSON.stringify(text.toString('utf8', start, Math.min(end, start + length)).replace(/\ufffd$/, ''))
}
