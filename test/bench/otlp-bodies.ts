import { randomBytes } from 'node:crypto'
import { attributesOf } from '../support/otlp.ts'
import { encodeMessage, LogsData, TracesData } from '../support/otlp-proto.ts'

/** An export and the offsets of its ids, so that each request can have new ids: a repeat would store nothing. */
export interface OtlpBody {
  readonly bytes: Buffer
  readonly idOffsets: readonly number[]
}

export type Signal = 'traces' | 'logs'

export const ITEMS_PER_EXPORT = 512
const SPANS_PER_TRACE = 64
const START_MS = Date.UTC(2026, 0, 31, 9, 30)
const MESSAGE = 'The order was shipped on Friday, and the parcel service says that it arrives on Monday. '

/** 512 spans or log records of about 2 KB. */
export function otlpBody(signal: Signal): OtlpBody {
  const items = Array.from({ length: ITEMS_PER_EXPORT }, (_, index) => ({ index, spanId: spanIdOf(index) }))
  const traceIds = items.filter(({ index }) => index % SPANS_PER_TRACE === 0).map(() => randomBytes(16))
  const rows = items.map(({ index, spanId }) => {
    const traceId = traceIds[Math.floor(index / SPANS_PER_TRACE)]!
    const root = items[index - (index % SPANS_PER_TRACE)]!
    const ids = { traceId, spanId }
    return signal === 'logs'
      ? logRecord(index, ids)
      : span(index, ids, root.spanId === spanId ? undefined : root.spanId)
  })
  const resource = { attributes: attributesOf({ 'service.name': 'bench' }) }
  const message =
    signal === 'traces'
      ? encodeMessage(TracesData, { resourceSpans: [{ resource, scopeSpans: [{ spans: rows }] }] })
      : encodeMessage(LogsData, { resourceLogs: [{ resource, scopeLogs: [{ logRecords: rows }] }] })
  const bytes = Buffer.from(message)
  return { bytes, idOffsets: [...items.map(({ spanId }) => spanId), ...traceIds].flatMap((id) => offsetsOf(bytes, id)) }
}

/** Ends with the index, which keeps ids distinct: the load overwrites the first bytes of all of them for each export. */
function spanIdOf(index: number): Buffer {
  const id = randomBytes(8)
  id.writeUInt16BE(index, 6)
  return id
}

interface Ids {
  readonly traceId: Buffer
  readonly spanId: Buffer
}

function span(index: number, ids: Ids, parentSpanId: Buffer | undefined) {
  const start = START_MS + index * 10
  return {
    ...ids,
    ...(parentSpanId && { parentSpanId }),
    name: parentSpanId === undefined ? 'invoke_agent support' : 'chat gpt-5-mini',
    kind: 3,
    startTimeUnixNano: `${start}000000`,
    endTimeUnixNano: `${start + 250}000000`,
    attributes: attributesOf({
      'gen_ai.operation.name': parentSpanId === undefined ? 'invoke_agent' : 'chat',
      'gen_ai.request.model': 'gpt-5-mini',
      'gen_ai.usage.input_tokens': 100 + index,
      'gen_ai.usage.output_tokens': index,
      'gen_ai.input.messages': JSON.stringify([{ role: 'user', content: MESSAGE.repeat(12) }]),
      'gen_ai.output.messages': JSON.stringify([{ role: 'assistant', content: MESSAGE.repeat(7) }]),
    }),
  }
}

function logRecord(index: number, ids: Ids) {
  return {
    ...ids,
    timeUnixNano: `${START_MS + index}000000`,
    severityNumber: 9,
    body: { stringValue: MESSAGE.repeat(20) },
    attributes: attributesOf({ step: index, 'gen_ai.request.model': 'gpt-5-mini' }),
  }
}

/** The offsets of an id: its own span, and the spans that name it as trace or parent. */
function offsetsOf(bytes: Buffer, id: Buffer): number[] {
  const offsets: number[] = []
  for (let at = bytes.indexOf(id); at >= 0; at = bytes.indexOf(id, at + id.length)) offsets.push(at)
  return offsets
}
