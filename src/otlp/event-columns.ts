import { Bytes } from '../clickhouse/bytes.ts'
import { levelNumber } from '../journal/levels.ts'
import type { EventColumns } from '../journal/rows.ts'
import type { MappedEvent } from './mapping.ts'

/**
 * Lays out events in the columns in which the journal gets those of `POST /api/ingest/v1/events`. The text buffer is
 * reused, because allocation is expensive, so the columns are valid only until the next call.
 */
export function createColumns(): (events: readonly MappedEvent[]) => EventColumns {
  const bytes = new Bytes()

  return (events) => {
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
    bytes.clear()
    events.forEach(({ type, level, payload, occurredAt }, row) => {
      columns.typeStart[row] = bytes.length
      bytes.text(type)
      columns.typeEnd[row] = columns.payloadStart[row] = bytes.length
      bytes.bytes(payload)
      columns.payloadEnd[row] = bytes.length
      columns.level[row] = levelNumber(level)
      columns.occurredAt[row] = occurredAt
    })
    return { text: bytes.buffer, body: undefined, ...columns }
  }
}
