import { createBatcher } from '../../../stores/postgres/batcher.ts'
import type { Sql } from '../../../stores/postgres/connect.ts'
import type { OwnedPartition } from '../../../tenants/partitions/partition.ts'
import { detailsOf } from '../details.ts'
import type { RunDetails } from '../message.ts'

type RunDetailsById = ReadonlyMap<string, RunDetails>

type Owned = Pick<OwnedPartition, 'statistics'>

interface DetailsRequest extends RunsRequest {
  readonly owned: Owned
}

interface RunsRequest {
  readonly workspaceId: string
  readonly runIds: readonly string[]
}

/** Time between two reads, so that runs that end meanwhile are counted and read together. */
const INTERVAL_MS = 100
const BATCH_MAX = 64
const RUN_BYTES = 40

/**
 * Reads the details of ended runs for the messages of all endpoints. Runs of a partition that end at about the same time are
 * read together; none waits for the counts of another partition.
 */
export class DetailsReader {
  private readonly readers = new WeakMap<Owned, PartitionReader>()

  constructor(private readonly sql: Sql) {}

  /** The details of runs of a workspace that have ended, with everything counted that was reported before this call. */
  read({ owned, workspaceId, runIds }: DetailsRequest): Promise<RunDetailsById> {
    if (runIds.length === 0) return Promise.resolve(new Map())
    const reader = this.readers.getOrInsertComputed(owned, () => new PartitionReader(this.sql, owned))
    return reader.read({ workspaceId, runIds })
  }
}

class PartitionReader {
  private readonly batcher
  private requests = 0
  private readAtMs = 0

  constructor(
    private readonly sql: Sql,
    private readonly owned: Owned,
  ) {
    this.batcher = createBatcher<RunsRequest, RunDetailsById>({
      run: (requests) => this.readAll(requests),
      // Every request has its own key, because their order does not matter.
      keyOf: () => String(this.requests++),
      bytesOf: ({ runIds }) => runIds.length * RUN_BYTES,
      limits: { itemsPerBatch: BATCH_MAX, batchesInFlight: 1 },
    })
  }

  read(request: RunsRequest): Promise<RunDetailsById> {
    return this.batcher.submit(request)
  }

  private async readAll(requests: readonly RunsRequest[]): Promise<(RunDetailsById | Error)[]> {
    const waitMs = this.readAtMs + INTERVAL_MS - performance.now()
    if (waitMs > 0) await Bun.sleep(waitMs)
    this.readAtMs = performance.now()
    const counted = this.owned.statistics.flush()
    const byWorkspace = Map.groupBy(requests, ({ workspaceId }) => workspaceId)
    const found = new Map<string, Promise<RunDetailsById>>()
    for (const [workspaceId, all] of byWorkspace) {
      const runIds = [...new Set(all.flatMap(({ runIds }) => runIds))]
      found.set(
        workspaceId,
        counted.then(() => detailsOf(this.sql, workspaceId, runIds)),
      )
    }
    // A failure concerns only its workspace.
    await Promise.allSettled(found.values())
    return Promise.all(requests.map(({ workspaceId }) => found.get(workspaceId)?.catch(asError) ?? new Map()))
  }
}

function asError(cause: unknown): Error {
  return cause instanceof Error ? cause : new Error('the details of runs cannot be read', { cause })
}
