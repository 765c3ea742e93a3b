import { ApiError, notFound } from '../../base/errors.ts'
import type { Mint, RunRef } from '../../base/ids.ts'
import type { Limits } from '../../base/limits.ts'
import type { Appended } from '../../stores/journal/journal.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import { eventsToClaim, type Partitions, writerOf } from '../../tenants/partitions/partition.ts'
import { notHosted } from '../runs/access.ts'
import type { RunDirectory } from '../runs/directory.ts'
import type { EventScan } from './scan.ts'
import { ScanPool } from './scan-pool.ts'
import type { EventsAccepted } from './schema.ts'

interface EventIngestDeps {
  readonly runs: RunDirectory
  readonly partitions: Partitions
  readonly limits: Limits
  /** Deducts the events from the key's budget. @throws ApiError RATE_LIMITED */
  readonly takeBudget: (caller: Caller, events: number) => void
  /** Called with the result of each call, for the metrics. */
  readonly onAccepted: (accepted: number, duplicates: number) => void
}

interface AppendOptions {
  /** Store the valid events and list the invalid ones, instead of refusing the call. */
  readonly partial: boolean
  /**
   * Mints the same ids when a call with an `Idempotency-Key` is repeated, so that nothing is stored twice after a crash
   * between the append and storing the response.
   */
  readonly mint: Mint | undefined
}

export type EventIngest = ReturnType<typeof createEventIngest>

/** Ingests reported events (docs/events.md): from the bytes of the body to the journal. */
export function createEventIngest(deps: EventIngestDeps) {
  const { limits, partitions } = deps
  const scans = new ScanPool()

  /**
   * Resolves once every accepted event is on stable storage.
   * @throws ApiError VALIDATION_ERROR, RATE_LIMITED, NOT_FOUND, FORBIDDEN, CONFLICT, UNAVAILABLE
   */
  async function append(caller: Caller, body: Uint8Array, options: AppendOptions): Promise<EventsAccepted> {
    const { partial } = options
    const begun = scans.use(body, limits, partial, (scan) => {
      deps.takeBudget(caller, scan.count)
      const found = deps.runs.find(caller.workspaceId, scan.runId)
      return found instanceof Promise ? found : store(caller, found, body, scan, options)
    })
    const stored = begun instanceof Promise ? await storeLater(caller, begun, body, options) : begun
    const { count, rejected, claimed } = stored
    const { duplicates, durable } = claimed instanceof Promise ? await claimed : claimed
    const positions = await durable
    const accepted = count - duplicates
    deps.onAccepted(accepted, duplicates)
    return {
      accepted,
      duplicates,
      first_seq: positions?.firstSeq ?? null,
      last_seq: positions?.lastSeq ?? null,
      ...(partial && { rejected }),
    }
  }

  /** Scans the body again when its run has been looked up: no scan outlives the tick, whatever a store takes. */
  async function storeLater(
    caller: Caller,
    run: Promise<RunRef | null>,
    body: Uint8Array,
    options: AppendOptions,
  ): Promise<Stored> {
    const found = await run
    return scans.use(body, limits, options.partial, (scan) => store(caller, found, body, scan, options))
  }

  /** Appends the events of a scan. What it returns does not refer to the scan. */
  function store(
    caller: Caller,
    found: RunRef | null,
    body: Uint8Array,
    scan: EventScan,
    { partial, mint }: AppendOptions,
  ): Stored {
    const run = checkAccess(caller, found)
    const { count, rejected } = scan
    const { journal, ids } = writerOf(partitions, caller)
    if (!scan.hasIds && mint === undefined) {
      const durable = count === 0 ? null : journal.appendEvents({ run, scan, rows: undefined, ids: undefined })
      return { count, rejected, claimed: { duplicates: 0, durable } }
    }
    const eventIds = idsOf(scan, mint)
    const claimed = ids.claim(eventsToClaim(run, eventIds), async (rows) => {
      if (rows.length === 0) return null
      const appendFresh = (scan: EventScan) => journal.appendEvents({ run, scan, rows, ids: eventIds })
      // The ids had to be read from a store first.
      return scan.isReleased ? scans.use(body, limits, partial, appendFresh) : appendFresh(scan)
    })
    return { count, rejected, claimed }
  }

  return { append }
}

/** What remains of a call when its scan is released. */
interface Stored extends Pick<EventScan, 'count' | 'rejected'> {
  readonly claimed: Claiming | Promise<Claiming>
}

interface Claiming {
  readonly duplicates: number
  /** Resolves once the events are on stable storage; null if there are none. */
  readonly durable: Promise<Appended | null> | null
}

function checkAccess(caller: Caller, run: RunRef | null): RunRef {
  if (run === null) throw notFound('run_id: run', { param: 'run_id' })
  if (run.agentId !== caller.agentId)
    throw new ApiError('FORBIDDEN', 'run_id: the run belongs to a different agent than the key', {
      reason: 'wrong_agent',
      param: 'run_id',
    })
  return notHosted(run)
}

function idsOf(scan: EventScan, mint: Mint | undefined): (string | undefined)[] {
  return Array.from({ length: scan.count }, (_, row) => scan.idOf(row) ?? mint?.ulid())
}
