import fs from 'node:fs'
import { join } from 'node:path'
import type { Log } from '../../base/log.ts'
import { Consumers, SINK } from '../log/consumers.ts'
import type { GapList } from '../log/gaps.ts'
import type { FoundJournal, StartDecision } from '../start.ts'
import { ACKNOWLEDGED_NAME, AcknowledgedFile } from './acknowledged.ts'
import { openGaps } from './gaps.ts'
import { Identity } from './identity.ts'
import { Segments, segmentNames } from './segments.ts'

export interface PartsOptions {
  readonly dir: string
  /** When a segment exceeds this size, the next one is started. */
  readonly segmentBytes: number
  /** Called at every start to decide where positions continue, see {@link StartDecision}. */
  readonly decideStart?: (found: FoundJournal) => Promise<StartDecision>
  readonly log: Log
}

/** The parts of a journal on disk, and its consumers. */
export interface LogParts {
  readonly identity: Identity
  readonly gaps: GapList
  readonly acknowledged: AcknowledgedFile
  readonly consumers: Consumers
  readonly segments: Segments
}

/** Opens the directory and decides where positions continue: after all that were ever assigned. */
export async function openParts(options: PartsOptions): Promise<{ parts: LogParts; endSeq: number }> {
  const { dir, segmentBytes, log } = options
  fs.mkdirSync(dir, { recursive: true })
  const identity = Identity.open(dir, segmentNames(dir).length > 0)
  const gaps = openGaps(dir, log)
  const acknowledged = AcknowledgedFile.open(join(dir, ACKNOWLEDGED_NAME), log)
  const consumers = new Consumers()
  const segments = await Segments.open({
    dir,
    segmentBytes,
    sealOf: (firstSeq) => identity.sealOf(firstSeq),
    onGap: (afterSeq, throughSeq) => gaps.add({ afterSeq, throughSeq, loadedSeq: consumers.seqOf(SINK) }),
    acknowledgedSeq: acknowledged.seq,
    log,
  })
  const found = { epoch: identity.epoch, endSeq: segments.endSeq, acknowledgedSeq: acknowledged.seq }
  const decision = (await options.decideStart?.(found)) ?? { afterSeq: 0, loadedSeq: 0, newEpoch: false }
  const endSeq = Math.max(found.endSeq, found.acknowledgedSeq, decision.afterSeq)
  if (decision.newEpoch) identity.begin(endSeq + 1)
  if (endSeq > found.endSeq || decision.newEpoch) {
    // A journal that has never assigned a position has no gap: earlier positions belong to another journal.
    if (Math.max(found.endSeq, found.acknowledgedSeq) > 0)
      gaps.add({ afterSeq: found.endSeq, throughSeq: endSeq, loadedSeq: decision.loadedSeq })
    await segments.begin(endSeq + 1)
  }
  // Rows that were durable, but not acknowledged, before a crash are part of the journal now: readers may have them.
  if (segments.endSeq > acknowledged.seq) acknowledged.set(segments.endSeq)
  return { parts: { identity, gaps, acknowledged, consumers, segments }, endSeq }
}
