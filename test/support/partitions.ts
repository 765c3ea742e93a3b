import type { LoadProgress } from '../../src/stores/sink/sink.ts'
import { type OwnedPartition, onePartition, type Partitions } from '../../src/tenants/partitions/partition.ts'

/** One partition that has only the parts that a test needs. */
export function partitionWith(
  parts: Partial<Omit<OwnedPartition, 'sink'>> & { sink?: Partial<LoadProgress> },
): Partitions {
  return onePartition({ id: 0, generation: 0, ...parts } as OwnedPartition)
}
