import type { Clock } from '../../base/clock.ts'
import { ApiError } from '../../base/errors.ts'
import { inSlices, type Slice } from '../../base/http/shared-slice.ts'
import type { Limits } from '../../base/limits.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import { attempt, costOf } from '../kit.ts'
import { addTo, inBatches, inParallel } from '../traces/groups.ts'
import { BatchScan } from './batch-scan.ts'
import type { ScoreWriter } from './scores.ts'
import type { LangfuseTraces } from './traces.ts'
import { eventIdOf, type ScoreEvent, type TraceItem, validate } from './validate.ts'

interface LangfuseIngestDeps {
  readonly traces: Pick<LangfuseTraces, 'store'>
  readonly scores: ScoreWriter
  readonly limits: Limits
  readonly clock: Clock
  /** Deducts events from the key's budget. @throws ApiError RATE_LIMITED */
  readonly takeBudget: (caller: Caller, events: number) => void
}

/** The result of one event of a batch. */
export interface EventResult {
  readonly id: string
  /** Null if it is stored. */
  readonly error: ApiError | null
}

/** Traces of a batch that are written concurrently: the queues of the stores are bounded. */
const TRACES_AT_ONCE_MAX = 1_000
/** How long a batch waits for the beginnings of its traces, which may be in a batch that it has overtaken. */
const HEAD_WAIT_MS = 1_000

/** Stores batches of the Langfuse SDKs (docs/langfuse.md): traces as runs, observations as tasks and events. */
export class LangfuseIngest {
  constructor(private readonly deps: LangfuseIngestDeps) {}

  /**
   * Resolves once every event without an error is on stable storage, with the results in order.
   * @param body valid UTF-8
   * @throws ApiError VALIDATION_ERROR, PAYLOAD_TOO_LARGE, RATE_LIMITED, UNAVAILABLE: nothing is lost if the batch is sent again
   */
  async store(caller: Caller, body: Uint8Array, slice: Slice): Promise<EventResult[]> {
    const { limits, clock, takeBudget } = this.deps
    const scan = new BatchScan(body)
    await inSlices(slice, scan.read(limits.json_depth))
    takeBudget(caller, costOf(scan.count, body.length))
    const errors = new Map<number, ApiError>()
    const byTrace = new Map<string, TraceItem[]>()
    const scores: ScoreEvent[] = []
    const options = { idLengthMax: limits.external_id_length, now: clock.now() }
    for (let event = 0; event < scan.count; event++) {
      if (slice.isOver) await slice.yield()
      const checked = validate(scan, event, options)
      if (typeof checked === 'string') errors.set(event, new ApiError('VALIDATION_ERROR', checked))
      else if (checked.of === 'score') scores.push(checked)
      else if (checked.of !== 'log') addTo(byTrace, checked.traceId, checked)
    }
    const headBy = performance.now() + HEAD_WAIT_MS
    for (const traces of inBatches([...byTrace], TRACES_AT_ONCE_MAX)) {
      await inParallel(traces, ([traceId, items]) =>
        attempt(
          () => this.deps.traces.store(caller, { traceId, items, scan, slice, headBy }),
          (refused) => {
            for (const { index } of items) errors.set(index, refused)
          },
        ),
      )
    }
    if (scores.length > 0) await this.deps.scores.store(caller, { scan, events: scores, slice }, errors)
    return Array.from({ length: scan.count }, (_, event) => ({
      id: eventIdOf(scan, event),
      error: errors.get(event) ?? null,
    }))
  }
}
