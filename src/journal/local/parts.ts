import fs from 'node:fs'
import { join } from 'node:path'
import type { Log } from '../../log.ts'
import type { FoundJournal, StartDecision } from '../start.ts'
import { AcknowledgedFile } from './acknowledged.ts'
import { Consumers, SINK } from './consumers.ts'
import { Gaps } from './gaps.ts'
import { Identity } from './identity.ts'
import { Segments, segmentNames } from './segments.ts'

export interface PartsOptions {
  readonly dir: string
  /** A segment that has grown past this is closed and the next one begun. */
  readonly segmentBytes: number
  /** Asked at every start where positions are to go on, see {@link StartDecision}. */
  readonly decideStart?: (found: FoundJournal) => Promise<StartDecision>
  readonly log: Log
}

/** What a journal consists of on the disk, and who reads it. */
export interface Parts {
  readonly identity: Identity
  readonly gaps: Gaps
  readonly acknowledged: AcknowledgedFile
  readonly consumers: Consumers
  readonly segments: Segments
}

/** Opens what is in the directory, and settles where positions go on: after all that were ever given. */
export async function openParts(options: PartsOptions): Promise<{ parts: Parts; endSeq: number }> {
  const { dir, segmentBytes, log } = options
  fs.mkdirSync(dir, { recursive: true })
  const identity = Identity.open(dir, segmentNames(dir).length > 0)
  const gaps = Gaps.open(dir, log)
  const acknowledged = AcknowledgedFile.open(join(dir, 'acknowledged'), log)
  const consumers = new Consumers()
  const segments = await Segments.open({
    dir,
    segmentBytes,
    sealOf: (firstSeq) => identity.sealOf(firstSeq),
    onGap: (afterSeq, throughSeq) => gaps.note({ afterSeq, throughSeq, loadedSeq: consumers.seqOf(SINK) }),
    acknowledgedSeq: acknowledged.seq,
    log,
  })
  const found = { epoch: identity.epoch, endSeq: segments.endSeq, acknowledgedSeq: acknowledged.seq }
  const decision = (await options.decideStart?.(found)) ?? { afterSeq: 0, loadedSeq: 0, newEpoch: false }
  const endSeq = Math.max(found.endSeq, found.acknowledgedSeq, decision.afterSeq)
  if (decision.newEpoch) identity.begin(endSeq + 1)
  if (endSeq > found.endSeq || decision.newEpoch) {
    // What came before a journal that has never given a position is another one's.
    if (Math.max(found.endSeq, found.acknowledgedSeq) > 0)
      gaps.note({ afterSeq: found.endSeq, throughSeq: endSeq, loadedSeq: decision.loadedSeq })
    await segments.begin(endSeq + 1)
  }
  return { parts: { identity, gaps, acknowledged, consumers, segments }, endSeq }
}
