import { type Bytes, putUuid } from '../../stores/clickhouse/bytes.ts'
import { levelNumber } from '../../stores/journal/levels.ts'
import type { EventColumns } from '../../stores/journal/rows.ts'
import type { MappedEvent } from './mapping.ts'

/**
 * Lays out events in the columns in which the journal gets those of `POST /api/ingest/v1/events`.
 * @param json has their payloads, and gets their types
 */
export function columnsOf(events: readonly MappedEvent[], json: Bytes): EventColumns {
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
    taskIds: events.some(({ taskId }) => taskId !== null) ? new Uint32Array(count * 4) : undefined,
  }
  let lastType = ''
  let typeStart = json.length
  events.forEach(({ type, level, payload, occurredAt, taskId }, row) => {
    if (type !== lastType) {
      typeStart = json.length
      json.text(type)
      lastType = type
    }
    columns.typeStart[row] = typeStart
    columns.typeEnd[row] = json.length
    columns.payloadStart[row] = payload.start
    columns.payloadEnd[row] = payload.end
    columns.level[row] = levelNumber(level)
    columns.occurredAt[row] = occurredAt
    if (taskId !== null && columns.taskIds !== undefined) putUuid(taskId, columns.taskIds, row * 4)
  })
  return { text: json.buffer, body: undefined, ...columns }
}
