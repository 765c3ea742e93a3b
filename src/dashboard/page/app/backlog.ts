/** What `GET /readyz` says of positions. */
interface Positions {
  readonly partitions: readonly { readonly partition: number; readonly epoch: string; readonly end_seq: number }[]
  readonly consumers: Readonly<Record<string, { readonly lag: number | null }>>
}

interface Sample {
  readonly atMs: number
  readonly end: number
}

const SAMPLES_MAX = 240
const SOURCES_MAX = 20

/**
 * Estimates the age of the oldest row that consumers of the journal have not read yet. The service reports only how many rows
 * that are; earlier ends of the journal show how old they are. A busy service always has unread rows, but they are new.
 */
export class Backlog {
  /** By the partitions of the node that answered: others have other positions. */
  private readonly sources = new Map<string, Sample[]>()

  /** Seconds that the slowest consumer is behind, at least; 0 while it keeps up. @param nowMs Unix milliseconds */
  seconds({ partitions, consumers }: Positions, nowMs: number): number {
    if (partitions.length === 0) return 0
    const source = partitions.map(({ partition, epoch }) => `${partition} ${epoch}`).join()
    const end = partitions.reduce((sum, { end_seq }) => sum + end_seq, 0)
    const samples = [...(this.sources.get(source) ?? []), { atMs: nowMs, end }].slice(-SAMPLES_MAX)
    this.sources.delete(source)
    this.sources.set(source, samples)
    const [oldest] = this.sources.keys()
    if (this.sources.size > SOURCES_MAX && oldest !== undefined) this.sources.delete(oldest)
    const reached = end - Math.max(0, ...Object.values(consumers).map(({ lag }) => lag ?? 0))
    const unread = samples.find((sample) => sample.end > reached)
    return unread === undefined ? 0 : Math.round((nowMs - unread.atMs) / 1_000)
  }
}
