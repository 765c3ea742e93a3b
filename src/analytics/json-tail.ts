/** Documents that end with what the statement did. */
const FORMATS = new Set(['JSON', 'JSONStrings', 'JSONCompact', 'JSONCompactStrings'])

/** The end of such a document is no longer than that. */
const TAIL_BYTES = 256

export interface JsonTail {
  readonly format: string
  /** In the engine's normal form. */
  readonly query: string
  /** As they were given. */
  readonly settings: Readonly<Record<string, string>>
}

/**
 * Completes a JSON document with the members that clients of ClickHouse read at its end. What was read is told as 0, as
 * everywhere: the engine reads blocks in which rows of other tenants may lie.
 *
 * @returns `body` as it is for what is no such document
 */
export function withJsonTail(body: ReadableStream<Uint8Array>, tail: JsonTail): ReadableStream<Uint8Array> {
  if (!FORMATS.has(tail.format)) return body
  const startedAt = performance.now()
  let held = Buffer.alloc(0)
  const transform = new TransformStream<Uint8Array, Uint8Array>({
    transform(piece, controller) {
      held = Buffer.concat([held, piece])
      const end = held.length - TAIL_BYTES
      if (end <= 0) return
      controller.enqueue(held.subarray(0, end))
      held = Buffer.from(held.subarray(end))
    },
    flush(controller) {
      // Bytes before the last lines may be the middle of a character.
      const text = held.toString('latin1')
      controller.enqueue(Buffer.from(completed(text, tail, (performance.now() - startedAt) / 1000), 'latin1'))
    },
  })
  return body.pipeThrough(transform)
}

function completed(text: string, { query, settings }: JsonTail, elapsed: number): string {
  return text.replace(/(\t"rows": (\d+))\n\}\n$/, (_whole, rows: string, count: string) => {
    const members = [rows]
    if (endsWithLimit(query)) members.push(`\t"rows_before_limit_at_least": ${count}`)
    if (settings.output_format_write_statistics !== '0')
      members.push(`\t"statistics":\n\t{\n\t\t"elapsed": ${elapsed},\n\t\t"rows_read": 0,\n\t\t"bytes_read": 0\n\t}`)
    return `${members.join(',\n\n')}\n}\n`
  })
}

/** Whether the query, and not only a part of its middle, is limited. */
function endsWithLimit(query: string): boolean {
  return / LIMIT [^(']*$/.test(query)
}
