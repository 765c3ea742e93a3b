import type { EventColumns } from '../events/batch.ts'
import { LEVELS } from '../events/schema.ts'
import type { MappedEvent } from './mapping.ts'

/** Lays out events for the journal, as it gets those of `POST /api/ingest/v1/events`. */
export function toColumns(events: readonly MappedEvent[]): EventColumns {
  const count = events.length
  const columns = {
    count,
    typeStart: new Int32Array(count),
    typeEnd: new Int32Array(count),
    level: new Int8Array(count),
    payloadStart: new Int32Array(count),
    payloadEnd: new Int32Array(count),
    occurredAt: new Float64Array(count),
    decodedTypes: new Map<number, Buffer>(),
  }
  let length = 0
  // A UTF-16 unit takes at most 3 bytes.
  for (const { type, payload } of events) length += 3 * (type.length + payload.length)
  const text = Buffer.allocUnsafe(length)
  let at = 0
  events.forEach(({ type, level, payload, occurredAt }, row) => {
    columns.typeStart[row] = at
    at += text.write(type, at)
    columns.typeEnd[row] = at
    columns.payloadStart[row] = at
    at += text.write(payload, at)
    columns.payloadEnd[row] = at
    columns.level[row] = LEVELS.indexOf(level) + 1
    columns.occurredAt[row] = occurredAt
  })
  return { text, ...columns }
}
