import type { Steps } from '../../src/base/http/shared-slice.ts'
import type { LogRecord, OpenedExport, Span } from '../../src/doors/traces/telemetry.ts'
import { type DecodeLimits, decodeLimits } from '../../src/doors/traces/telemetry.ts'
import { toProtobuf } from '../../src/doors/traces/wire/json.ts'
import { openLogs, openTraces } from '../../src/doors/traces/wire/protobuf.ts'
import { parseConfig } from '../../src/service/config/config.ts'

/** The limits of a service with the default settings. */
export const DECODE_LIMITS: DecodeLimits = decodeLimits(parseConfig({}, '/').limits)

export type Open<Item> = (body: Uint8Array, limits: DecodeLimits) => Steps<OpenedExport<Item>>

/** Does the work without a pause. Returns its result and the number of times that it could have paused. */
export function atOnce<Result>(work: Steps<Result>): { result: Result; steps: number } {
  for (let steps = 0; ; steps++) {
    const { done, value } = work.next()
    if (done === true) return { result: value, steps }
  }
}

/** A decoder that returns the items of a body. */
export function decodedAtOnce<Item>(open: Open<Item>): (body: Uint8Array) => readonly Item[] {
  return (body) => atOnce(atOnce(open(body, DECODE_LIMITS)).result.decode()).result.items
}

/** Exports in JSON, as the service opens them. */
export const openTracesJson: Open<Span> = (body, limits) => openTraces(toProtobuf(body, 'traces'), limits)
export const openLogsJson: Open<LogRecord> = (body, limits) => openLogs(toProtobuf(body, 'logs'), limits)
