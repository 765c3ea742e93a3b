import { ApiError } from '../../../base/errors.ts'
import { type Epoch, type Frame, withEpoch } from '../journal.ts'
import { Consumers, LogJournal, type LogJournalOptions, SINK } from '../log/log-journal.ts'
import type { FoundJournal, StartDecision } from '../start.ts'
import { NatsLog, type NatsLogOptions } from './log.ts'
import { commitAt, type FoundEnd, findEnd } from './log-end.ts'
import { type Outbox, type OutboxIds, openState, outboxMessages } from './message.ts'
import { NatsStorage, type NatsStorageOptions } from './storage.ts'
import { answered, FencedError } from './stream.ts'
import { Units } from './units.ts'

const SETTLE_MS = 5_000
/** Compressed; about two million events, which ClickHouse loads in a few seconds. */
const PACE_BYTES = 128 * 1024 * 1024
const UNIT_BYTES = 4 * 1024 * 1024
/** Room in the stream for what is written while the backlog is being measured and deleted. */
const STREAM_ROOM_BYTES = 512 * 1024 * 1024
/** How often taking over is tried: other owners may take over at the same time. */
const RACES_MAX = 5

export interface NatsJournalOptions extends NatsLogOptions, LogJournalOptions, Omit<NatsStorageOptions, 'settleMs'> {
  /** See {@link NatsStorageOptions}. */
  readonly settleMs?: number
  /** On how many servers each message is stored. */
  readonly replicas: number
  /** The limit of the stream, which JetStream reserves on its servers. */
  readonly streamBytes?: number
  /** Rows are deleted in units of about this size. */
  readonly unitBytes?: number
  /** Called at every start to decide where positions continue, see {@link StartDecision}. No other owner can write any more. */
  readonly decideStart?: (found: FoundJournal) => Promise<StartDecision>
  /** Names a new epoch and stores it; called only after `decideStart` has asked for one. */
  readonly beginEpoch: (firstSeq: number) => Promise<Epoch>
}

/**
 * Opens the journal in a JetStream stream as its owner, creating the stream on first use. From then on no earlier owner
 * can write to it.
 * @throws FencedError when an owner of a higher generation has been there
 * @throws ApiError UNAVAILABLE when NATS does not answer
 */
export async function openNatsJournal(options: NatsJournalOptions): Promise<LogJournal> {
  const { maxBytes, keepBytes, replicas, settleMs = SETTLE_MS } = options
  const consumers = new Consumers()
  const log = await NatsLog.open(options, () => consumers.seqOf(SINK))
  const streamBytes = options.streamBytes ?? maxBytes + keepBytes + STREAM_ROOM_BYTES
  await answered(settleMs, () => log.stream.ensure(replicas, streamBytes))
  const units = new Units(options.unitBytes ?? UNIT_BYTES)
  const { storage, found, intactSeq } = await answered(settleMs, () => takeOverFrom(log, units, options))
  await answered(settleMs, () => units.load(log.stream))
  const decision: StartDecision = (await options.decideStart?.(found)) ?? { afterSeq: 0, loadedSeq: 0, newEpoch: false }
  const endSeq = Math.max(found.endSeq, decision.afterSeq)
  if (decision.newEpoch) log.epochs = withEpoch(log.epochs, await options.beginEpoch(endSeq + 1))
  const { loadedSeq } = decision
  if (endSeq > found.endSeq || decision.newEpoch) {
    await storage.publishState({ foundSeq: found.endSeq, endSeq, loadedSeq })
  }
  // Earlier positions belong to another journal if this one has never assigned any; ClickHouse lacks those after `loadedSeq`.
  const afterSeq = found.endSeq > 0 ? intactSeq : loadedSeq
  log.gapList.add({ afterSeq, throughSeq: endSeq, loadedSeq })
  const { outboxIds } = storage
  const receivedAt = Math.max(storage.receivedAt, decision.decidedMs ?? 0)
  return new LogJournal(storage, { endSeq, receivedAt, outboxIds, consumers }, { paceBytes: PACE_BYTES, ...options })
}

/** Takes over even from an owner that goes on publishing: it would win most races for the next message. */
async function takeOverFrom(log: NatsLog, units: Units, options: NatsJournalOptions) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await takeOver(log, units, options)
    } catch (error) {
      const isRace = error instanceof ApiError && error.cause instanceof FencedError
      if (!isRace || attempt === RACES_MAX) throw error
      await endFor(log, options.generation)
      await log.stream.fence(options.generation)
    }
  }
}

/** Publishes the state message after everything that other owners have published. */
async function takeOver(log: NatsLog, units: Units, options: NatsJournalOptions) {
  const { generation, settleMs = SETTLE_MS, onLost } = options
  const end = await endFor(log, generation)
  let isOwner = false
  const tell = (reason: string) => isOwner && onLost(reason)
  const outboxIds = await outboxIdsAt(log, end.outbox)
  const storage = new NatsStorage(log, units, end, outboxIds, { ...options, settleMs, onLost: tell })
  const { endSeq, intactSeq, isEndLost } = end
  await storage.publishState({ foundSeq: intactSeq, endSeq, loadedSeq: 0, isEndLost })
  isOwner = true
  return { storage, found: { epoch: log.epoch.epoch, endSeq, acknowledgedSeq: endSeq, isEndLost }, intactSeq }
}

/** @throws FencedError when an owner of a higher generation has been there */
async function endFor(log: NatsLog, generation: number): Promise<FoundEnd> {
  const end = await findEnd(log)
  if (end.generation <= generation) return end
  throw new FencedError(`generation ${end.generation} has taken over ${log.stream.name}; this is ${generation}`)
}

/** The outbox ids of the newest frame of each kind that has some, as far as they are still stored. */
async function outboxIdsAt(log: NatsLog, outbox: Outbox): Promise<OutboxIds> {
  const ids = new Map<Frame['kind'], readonly string[]>()
  for (const [streamSeq, kinds] of outboxMessages(outbox)) {
    const message = await log.stream.getFromLeader(streamSeq)
    const found =
      message?.head?.kind === 'state'
        ? openState(log.sealKey, streamSeq, message.data)?.state.outboxIds
        : (await commitAt(log, streamSeq))?.frames.map(({ kind, outboxIds }) => [kind, outboxIds] as const)
    for (const [kind, each] of found ?? []) if (kinds.includes(kind)) ids.set(kind, each)
  }
  return ids
}
