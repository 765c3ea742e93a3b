import {
  checkJournals,
  type FeedSource,
  type OwnedPartition,
  oldestUnloadedOf,
  type Partition,
  type Partitions,
} from './partition.ts'

/** The only partition of a service that keeps its journal in local files: this process always owns it. */
export function onePartition(owned: OwnedPartition, feeds: FeedSource): Partitions {
  const partition: Partition = {
    id: owned.id,
    owned,
    loading: owned.sink,
    flushChanges: () => owned.relay.flush(),
    feeds: async () => feeds,
  }
  const allOwned = [owned]
  const openFeeds = [feeds]
  return {
    isOnlyOne: true,
    of: () => partition,
    owned: () => allOwned,
    check: () => checkJournals(allOwned),
    openFeeds: () => openFeeds,
    oldestUnloaded: () => oldestUnloadedOf(owned),
  }
}
