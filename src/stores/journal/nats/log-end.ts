import type { Epoch } from '../journal.ts'
import { NO_CHECK } from '../log/frame.ts'
import { isPart, type ReadCommit, readCommit } from './chain.ts'
import type { NatsLog } from './log.ts'
import { NO_OUTBOX, type Outbox, openState, type StreamMessage } from './message.ts'

/** Where the next commit goes. */
export interface LogEnd {
  /** The last message of the stream. */
  readonly streamSeq: number
  /** The last position that was assigned. */
  readonly endSeq: number
  /** The check of the last commit or state message, which the next one includes. */
  readonly check: Buffer
  readonly outbox: Outbox
  /** The time of the newest message, Unix milliseconds; 0 if that is not known. */
  readonly receivedAt: number
}

/** The end of a log as {@link findEnd} has found it. */
export interface FoundEnd extends LogEnd {
  /** The last position whose row was found; below `endSeq` when the newest commits are damaged. */
  readonly intactSeq: number
  /** The message after which reading can continue: the last one of that commit; 0 when there is none. */
  readonly intactStreamSeq: number
  /** The epoch that the state message at the end names, perhaps a newer one than the caller knows; undefined after a commit. */
  readonly epoch: Epoch | undefined
  /** The highest generation that has published. */
  readonly generation: number
  /**
   * Whether messages behind the end are lost or damaged: they may have been commits, with positions that nobody knows. Also
   * if an earlier owner has found that, and no epoch has begun since.
   */
  readonly isEndLost: boolean
}

/**
 * Finds the end of the log: the last commit that is complete, or state message. Commits after it whose payload is
 * damaged have the positions that their headers name, so that none is assigned twice.
 * @throws BehindError when the stream's leader does not have its newest messages yet
 */
export async function findEnd(log: NatsLog): Promise<FoundEnd> {
  const { first_seq, last_seq: streamSeq } = (await log.stream.info()).state
  let claimedSeq = 0
  let generation = 0
  let receivedAt = 0
  let isEndLost = false
  for (let at = streamSeq; at >= first_seq && at > 0; ) {
    const message = await log.stream.getFromLeader(at)
    const head = message?.head
    generation = Math.max(generation, head?.generation ?? 0)
    receivedAt = Math.max(receivedAt, head?.receivedAt ?? 0)
    isEndLost ||= message === null || message.isDamaged === true
    if (message === null || head === undefined || head.kind === 'fence') {
      at--
      continue
    }
    const isComplete = head.kind === 'state' || head.part === head.parts - 1
    const found = isComplete ? await intactAt(log, message) : undefined
    if (found !== undefined) {
      const { endSeq: intactSeq, ...rest } = found
      const endSeq = Math.max(intactSeq, claimedSeq)
      isEndLost ||= found.isEndLost
      return { ...rest, streamSeq, endSeq, intactSeq, intactStreamSeq: at, generation, receivedAt, isEndLost }
    }
    // A group that lacks its last part was never acknowledged, nor one that has another owner's message in its place.
    if (isComplete && !(await isVoid(log, message))) claimedSeq = Math.max(claimedSeq, head.endSeq)
    // One by one: late parts of an earlier owner's group may follow whole commits of its successor.
    at--
  }
  const nothing = { intactSeq: 0, intactStreamSeq: 0, epoch: undefined, check: NO_CHECK, outbox: NO_OUTBOX }
  return { ...nothing, streamSeq, endSeq: claimedSeq, generation, receivedAt, isEndLost }
}

/** The check of the commit or state message that ends with message `streamSeq`; undefined when there is none. */
export async function checkAt(log: NatsLog, streamSeq: number): Promise<Buffer | undefined> {
  const message = await log.stream.getFromLeader(streamSeq)
  return message === null ? undefined : (await intactAt(log, message))?.check
}

/** Whether other messages have taken the places of some parts of the group that ends with `message`. */
async function isVoid({ stream }: NatsLog, { head, streamSeq }: StreamMessage): Promise<boolean> {
  if (head?.kind !== 'commit') return false
  for (let at = head.groupSeq; at < streamSeq; at++) {
    const part = await stream.getFromLeader(at)
    // One that is missing or damaged may have been a part.
    if (part?.head !== undefined && !isPart(part, head, at - head.groupSeq)) return true
  }
  return false
}

async function intactAt(
  log: NatsLog,
  message: StreamMessage,
): Promise<(Omit<LogEnd, 'streamSeq' | 'receivedAt'> & Pick<FoundEnd, 'epoch' | 'isEndLost'>) | undefined> {
  const { head, streamSeq, data } = message
  if (head === undefined) return undefined
  const { outbox } = head
  if (head.kind === 'state') {
    const opened = openState(log.sealKey, streamSeq, data)
    if (opened === undefined) return undefined
    const { state, check } = opened
    const { endSeq, epoch } = state
    return { endSeq, check, outbox, epoch, isEndLost: state.isEndLost && epoch.epoch === log.epoch.epoch }
  }
  const commit = await commitAt(log, head.groupSeq)
  return commit && { endSeq: commit.head.endSeq, check: commit.check, outbox, epoch: undefined, isEndLost: false }
}

/** The commit whose first message is stored at `streamSeq`; undefined when it is not there, or damaged. */
export async function commitAt(log: NatsLog, streamSeq: number): Promise<ReadCommit | undefined> {
  const { stream } = log
  const first = await stream.getFromLeader(streamSeq)
  const head = first?.head
  if (first === null || head?.kind !== 'commit' || head.groupSeq !== streamSeq || head.part !== 0) return undefined
  const rest = await Promise.all(
    Array.from({ length: head.parts - 1 }, (_, index) => stream.getFromLeader(streamSeq + index + 1)),
  )
  const parts = [first, ...rest]
  const isWhole = parts.every((part, index) => isPart(part, head, index))
  return isWhole ? readCommit(log, head, parts as StreamMessage[]) : undefined
}
