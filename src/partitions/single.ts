import { checkJournals, type OwnedPartition, oldestUnloadedOf, type Partition, type Partitions } from './partition.ts'

/** The only partition of a service that keeps its journal in local files: this process always owns it. */
export function onePartition(owned: OwnedPartition): Partitions {
  const partition: Partition = {
    id: owned.id,
    owned,
    loading: owned.sink,
    flushChanges: () => owned.relay.flush(),
  }
  const allOwned = [owned]
  return {
    isOnlyOne: true,
    of: () => partition,
    owned: () => allOwned,
    check: () => checkJournals(allOwned),
    oldestUnloaded: () => oldestUnloadedOf(owned),
  }
}
