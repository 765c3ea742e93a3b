import { JSON_DOCUMENTS } from '../../stores/clickhouse/protocol.ts'

/** Longer than the end of any such document. */
const TAIL_BYTES = 256

interface JsonTail {
  readonly format: string
  /** The query in the engine's normal form. */
  readonly query: string
  /** The settings of the request. */
  readonly settings: Readonly<Record<string, string>>
}

/**
 * Appends the members that ClickHouse clients expect at the end of a JSON document. Rows and bytes read are always 0: the
 * engine reads blocks that may contain rows of other tenants.
 *
 * @returns `body` unchanged for other formats
 */
export function withJsonTail(body: ReadableStream<Uint8Array>, tail: JsonTail): ReadableStream<Uint8Array> {
  if (!JSON_DOCUMENTS.has(tail.format)) return body
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
      // The held bytes may start in the middle of a character.
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

/** Whether the query as a whole has a LIMIT, not only a subquery. */
function endsWithLimit(query: string): boolean {
  const at = query.lastIndexOf(' LIMIT ')
  return at >= 0 && !/[(']/.test(query.slice(at))
}
