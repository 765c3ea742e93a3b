import { type OwnedPartition, onePartition, type Partitions } from '../../src/partitions/partition.ts'
import type { LoadProgress } from '../../src/sink/sink.ts'

/** One partition that has only the parts that a test needs. */
export function partitionWith(
  parts: Partial<Omit<OwnedPartition, 'sink'>> & { sink?: Partial<LoadProgress> },
): Partitions {
  return onePartition({ id: 0, generation: 0, ...parts } as OwnedPartition)
}
