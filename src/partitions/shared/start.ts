import type { FoundJournal, StartDecision } from '../../journal/start.ts'
import type { ClusterStore, PartitionRow } from './store.ts'

/**
 * Decides where the positions of a partition continue: after every position that anyone is known to have seen. A log that
 * ends earlier has lost rows or was set back, so it begins a new epoch.
 */
export async function decideClusterStart(
  { epoch, endSeq }: FoundJournal,
  { position, endSeq: reportedSeq }: PartitionRow,
  store: Pick<ClusterStore, 'countedSeq'>,
): Promise<StartDecision> {
  const { loadedSeq, inFlightSeq } = position
  const afterSeq = Math.max(loadedSeq, inFlightSeq, reportedSeq, await store.countedSeq(epoch))
  return { afterSeq, loadedSeq, newEpoch: afterSeq > endSeq }
}
