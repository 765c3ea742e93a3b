import type { Limits } from '../config.ts'
import { ApiError } from '../http/errors.ts'
import type { Mint } from '../ids.ts'
import type { Appended } from '../journal/journal.ts'
import type { Caller } from '../keys/schema.ts'
import { type Partitions, writerOf } from '../partitions/partition.ts'
import type { RunDirectory } from '../runs/directory.ts'
import type { EventBatch } from './batch.ts'
import type { Claim } from './id-index.ts'
import { acquireScan, type EventScan, releaseScan } from './scan.ts'
import type { EventsAccepted, RunRef } from './schema.ts'

export interface EventIngestDeps {
  readonly runs: RunDirectory
  readonly partitions: Partitions
  readonly limits: Limits
  /** Deducts the events from the key's budget. @throws ApiError RATE_LIMITED */
  readonly takeBudget: (caller: Caller, events: number) => void
  /** Called with the result of each call, for the metrics. */
  readonly onAccepted: (accepted: number, duplicates: number) => void
}

export interface AppendOptions {
  /** Store the valid events and list the invalid ones, instead of refusing the call. */
  readonly partial: boolean
  /**
   * Mints the same ids when a call with an `Idempotency-Key` is repeated, so that nothing is stored twice after a crash
   * between the append and storing the response.
   */
  readonly mint: Mint | undefined
}

export type EventIngest = ReturnType<typeof createEventIngest>

/** Ingests reported events (docs/specification.md#events): from the bytes of the body to the journal. */
export function createEventIngest(deps: EventIngestDeps) {
  /**
   * Resolves once every accepted event is on stable storage.
   * @throws ApiError VALIDATION_ERROR, RATE_LIMITED, NOT_FOUND, FORBIDDEN, CONFLICT, UNAVAILABLE
   */
  async function append(caller: Caller, body: Uint8Array, options: AppendOptions): Promise<EventsAccepted> {
    const scan = acquireScan()
    let duplicates = 0
    let accepted: number
    let durable: Promise<Appended | null>
    try {
      scan.scan(body, deps.limits, options.partial)
      deps.takeBudget(caller, scan.count)
      const found = deps.runs.find(caller.workspaceId, scan.runId)
      const run = checkAccess(caller, found instanceof Promise ? await found : found)
      const { journal, ids } = writerOf(deps.partitions, caller)
      if (scan.hasIds || options.mint !== undefined) {
        const claiming = ids.claim(run, idsOf(scan, options.mint), async (claim) =>
          claim.duplicates === scan.count ? null : journal.appendEvents(freshOf(run, scan, claim)),
        )
        ;({ duplicates, durable } = claiming instanceof Promise ? await claiming : claiming)
      } else if (scan.count === 0) {
        durable = Promise.resolve(null)
      } else {
        durable = journal.appendEvents({ run, scan, rows: undefined, ids: undefined })
      }
      accepted = scan.count - duplicates
    } finally {
      // The journal has copied the rows; nothing refers to the scan's bytes any more.
      releaseScan(scan)
    }
    const positions = await durable
    deps.onAccepted(accepted, duplicates)
    return {
      accepted,
      duplicates,
      first_seq: positions?.firstSeq ?? null,
      last_seq: positions?.lastSeq ?? null,
      ...(options.partial && { rejected: scan.rejected }),
    }
  }
  return { append }
}

function checkAccess(caller: Caller, run: RunRef | null): RunRef {
  if (run === null) throw new ApiError('NOT_FOUND', 'run_id: run does not exist')
  if (run.agentId !== caller.agentId)
    throw new ApiError('FORBIDDEN', 'run_id: the run belongs to a different agent than the key')
  if (run.runtimeType === 'hosted') {
    throw new ApiError('CONFLICT', 'run_id: hosted runs are reported by the service itself')
  }
  return run
}

function idsOf(scan: EventScan, mint: Mint | undefined): (string | undefined)[] {
  return Array.from({ length: scan.count }, (_, row) => scan.idOf(row) ?? mint?.ulid())
}

function freshOf(run: RunRef, scan: EventScan, { fresh, ids }: Claim): EventBatch {
  const rows = fresh.flatMap((isFresh, row) => (isFresh ? row : []))
  return { run, scan, rows, ids }
}
