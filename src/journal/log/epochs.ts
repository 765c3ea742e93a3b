import type { Epoch } from '../journal.ts'

/** A name for a new epoch. */
export function newEpoch(): string {
  return Bun.randomUUIDv7().slice(-12)
}

/** The epoch that a position belongs to. */
export function epochAt(epochs: readonly Epoch[], seq: number): string {
  return (epochs.findLast(({ firstSeq }) => firstSeq <= seq) ?? epochs[0]).epoch
}

/** Adds an epoch. Those that would begin at or after it have no rows and are left out. */
export function withEpoch(epochs: readonly Epoch[], epoch: Epoch): readonly Epoch[] {
  return [...epochs.filter(({ firstSeq }) => firstSeq < epoch.firstSeq), epoch]
}
