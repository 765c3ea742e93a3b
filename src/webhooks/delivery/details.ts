import type { OwnedPartition } from '../../partitions/partition.ts'
import { createBatcher } from '../../postgres/batcher.ts'
import type { Sql } from '../../postgres/connect.ts'
import { detailsOf } from '../details.ts'
import type { RunDetails } from '../message.ts'

type RunDetailsById = ReadonlyMap<string, RunDetails>

interface DetailsRequest {
  readonly owned: Pick<OwnedPartition, 'id' | 'statistics'>
  readonly workspaceId: string
  readonly runIds: readonly string[]
}

/** Time between two reads, so that runs that end meanwhile are counted and read together. */
const INTERVAL_MS = 100
const BATCH_MAX = 64
const RUN_BYTES = 40

/** Reads the details of ended runs for the messages of all endpoints. Runs that end at about the same time are read together. */
export class DetailsReader {
  private readonly batcher
  private requests = 0
  private readAtMs = 0

  constructor(private readonly sql: Sql) {
    this.batcher = createBatcher<DetailsRequest, RunDetailsById>({
      run: (requests) => this.readAll(requests),
      // Every request has its own key, because their order does not matter.
      keyOf: () => String(this.requests++),
      bytesOf: ({ runIds }) => runIds.length * RUN_BYTES,
      limits: { itemsPerBatch: BATCH_MAX, batchesInFlight: 1 },
    })
  }

  /** The details of runs of a workspace that have ended, with everything counted that was reported before this call. */
  read(request: DetailsRequest): Promise<RunDetailsById> {
    return request.runIds.length === 0 ? Promise.resolve(new Map()) : this.batcher.submit(request)
  }

  private async readAll(requests: readonly DetailsRequest[]): Promise<(RunDetailsById | Error)[]> {
    const waitMs = this.readAtMs + INTERVAL_MS - performance.now()
    if (waitMs > 0) await Bun.sleep(waitMs)
    this.readAtMs = performance.now()
    const counted = new Map<number, Promise<void>>()
    const byWorkspace = Map.groupBy(requests, ({ workspaceId }) => workspaceId)
    const found = new Map<string, Promise<RunDetailsById>>()
    for (const [workspaceId, all] of byWorkspace) {
      const { owned } = all[0]
      const flushed = counted.getOrInsertComputed(owned.id, () => owned.statistics.flush())
      const runIds = [...new Set(all.flatMap(({ runIds }) => runIds))]
      found.set(
        workspaceId,
        flushed.then(() => detailsOf(this.sql, workspaceId, runIds)),
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
