import type { MsgHdrs } from '@nats-io/transport-node'
import type { Epoch, Frame } from '../journal.ts'
import { OUTBOX_ORDER } from '../kinds.ts'
import { CHECK_BYTES, FrameSeal, readIds, UUID_BYTES } from '../log/frame.ts'

/**
 * The messages of a stream. A **commit** is one message or a group of consecutive ones (`parts`); its payload is frames
 * like those of segment files. A **state** message has no rows. It says where the log stands: a new owner publishes one
 * before anything else, which fences off the earlier owner, and each unit of deletion begins with one: it repeats the outbox
 * ids that are in earlier messages, which can then be deleted although the outbox may still have their rows.
 * A **fence** message has no content: it takes the stream sequence that a busy earlier owner would use next.
 */

/**
 * The header of each message: kind, first and last position, part, parts, stream sequence of the first part, generation,
 * time, encoding, outbox; then a keyed check of these and of the message's stream sequence.
 */
const HEAD = 'Journal'
const HEAD_TEXT = /^([csf](?: \d{1,16}){11}) ([\w-]{16})$/
const HEAD_CHECK_LENGTH = 16
const KIND_OF = { c: 'commit', s: 'state', f: 'fence' } as const
/** Takes the place of the epoch in the seal of a state message. */
const STATE = 'state'

/**
 * The stream sequence of the newest message with outbox ids of each kind of frame, in the order of {@link OUTBOX_ORDER}; 0 for none.
 * It is the commit with that frame, or a state message that repeats its ids.
 */
export type Outbox = readonly [run: number, task: number, event: number]

export const NO_OUTBOX: Outbox = [0, 0, 0]

export interface MessageHead {
  readonly kind: 'commit' | 'state' | 'fence'
  /**
   * Positions of the commit's first and last row. A state message: the next position, and the last one assigned. Nothing
   * in a fence.
   */
  readonly firstSeq: number
  readonly endSeq: number
  /** Index of this message in its group, and the length of the group. */
  readonly part: number
  readonly parts: number
  /** Stream sequence of the group's first message. */
  readonly groupSeq: number
  /** Which owner has published it; rises with each claim. */
  readonly generation: number
  /** When the rows were accepted, Unix milliseconds. */
  readonly receivedAt: number
  /** Whether the payload of the group is compressed with Zstandard. */
  readonly isCompressed: boolean
  /** Including this message. */
  readonly outbox: Outbox
}

/** A message as it is stored. */
export interface StreamMessage {
  readonly streamSeq: number
  /** Undefined for a message that no journal has written. */
  readonly head: MessageHead | undefined
  /** Whether it has a header of a journal that is not genuine. */
  readonly isDamaged?: boolean
  /** The `Nats-Msg-Id`. */
  readonly id: string
  readonly data: Buffer
}

/** @param streamSeq where the message will be stored; 0 for a fence, which may be anywhere */
export function writeHead(headers: MsgHdrs, head: MessageHead, key: Buffer, streamSeq: number): void {
  const { kind, firstSeq, endSeq, part, parts, groupSeq, generation, receivedAt, isCompressed, outbox } = head
  const place = [firstSeq, endSeq, part, parts, groupSeq]
  const text = `${kind[0]} ${[...place, generation, receivedAt, isCompressed ? 1 : 0, ...outbox].join(' ')}`
  headers.set(HEAD, `${text} ${checkOf(key, streamSeq, text)}`)
}

/** Whether a message has the header of a journal, genuine or not. */
export function hasHead(headers: MsgHdrs): boolean {
  return headers.has(HEAD)
}

/** Undefined when this journal has not written it for a message at `streamSeq`. */
export function readHead(headers: MsgHdrs, key: Buffer, streamSeq: number): MessageHead | undefined {
  const [, text, check] = HEAD_TEXT.exec(headers.get(HEAD)) ?? []
  if (text === undefined) return undefined
  const kind = KIND_OF[text[0] as keyof typeof KIND_OF]
  if (check !== checkOf(key, kind === 'fence' ? 0 : streamSeq, text)) return undefined
  const numbers = text.slice(2).split(' ').map(Number)
  const [firstSeq, endSeq, part, parts, groupSeq, generation, receivedAt, encoding, run, task, event] = numbers
  const place = { firstSeq, endSeq, part, parts, groupSeq }
  return { kind, ...place, generation, receivedAt, isCompressed: encoding === 1, outbox: [run, task, event] }
}

function checkOf(key: Buffer, streamSeq: number, text: string): string {
  const hasher = new Bun.CryptoHasher('sha256', key).update(`head ${streamSeq} ${text}`)
  return hasher.digest('base64url').slice(0, HEAD_CHECK_LENGTH)
}

/** The outbox ids of the newest frame of each kind. */
export type OutboxIds = ReadonlyMap<Frame['kind'], readonly string[]>

/** What {@link outbox} is after a message at `streamSeq` with these outbox ids. */
export function outboxAfter(outbox: Outbox, streamSeq: number, ids: OutboxIds): Outbox {
  const [run, task, event] = OUTBOX_ORDER.map((kind, index) =>
    (ids.get(kind)?.length ?? 0) > 0 ? streamSeq : outbox[index],
  )
  return [run, task, event]
}

/** The stream sequences in `outbox`, with the kinds of frames each of them stands for. */
export function outboxMessages(outbox: Outbox): Map<number, Frame['kind'][]> {
  const messages = new Map<number, Frame['kind'][]>()
  outbox.forEach((streamSeq, index) => {
    if (streamSeq > 0) messages.set(streamSeq, [...(messages.get(streamSeq) ?? []), OUTBOX_ORDER[index]])
  })
  return messages
}

/** Where the log stands. */
export interface LogState {
  readonly generation: number
  /** The current epoch. */
  readonly epoch: Epoch
  /** The last position of the stream before this message. Positions between it and `endSeq` have no rows. */
  readonly foundSeq: number
  /** The last position that was assigned. */
  readonly endSeq: number
  /** Rows up to here are in ClickHouse. */
  readonly loadedSeq: number
  /**
   * Whether newer messages were found lost or damaged. The epoch that it names then ends here: whoever owns the log next and
   * knows of no newer one begins it, if the owner that has found this did not live to do so.
   */
  readonly isEndLost: boolean
  /** Those of earlier messages that the outbox may still have. */
  readonly outboxIds: OutboxIds
  /** The check of the last commit or state message before. */
  readonly before: Buffer
}

/** The payload of a state message that is stored at `streamSeq`, and its check, which the next message includes. */
export function sealState(key: Buffer, streamSeq: number, state: LogState): { data: Buffer; check: Buffer } {
  const outboxIds = [...state.outboxIds].map(([kind, ids]) => [kind, packed(ids)])
  const body = Buffer.from(JSON.stringify({ ...state, outboxIds, before: state.before.toString('hex') }))
  const check = new FrameSeal(key, STATE, streamSeq).check(0, body)
  return { data: Buffer.concat([check, body]), check }
}

/** Undefined when it was not written by this journal for this place. */
export function openState(
  key: Buffer,
  streamSeq: number,
  data: Buffer,
): { state: LogState; check: Buffer } | undefined {
  const check = data.subarray(0, CHECK_BYTES)
  const body = data.subarray(CHECK_BYTES)
  if (!new FrameSeal(key, STATE, streamSeq).check(0, body).equals(check)) return undefined
  const state = JSON.parse(body.toString())
  const outboxIds = new Map(state.outboxIds.map(([kind, ids]: [Frame['kind'], string]) => [kind, unpacked(ids)]))
  return { state: { ...state, outboxIds, before: Buffer.from(state.before, 'hex') }, check: Buffer.from(check) }
}

/** A third of the length: there may be thousands. */
function packed(ids: readonly string[]): string {
  return Buffer.from(ids.join('').replaceAll('-', ''), 'hex').toString('base64')
}

function unpacked(text: string): string[] {
  const bytes = Buffer.from(text, 'base64')
  return readIds(bytes, 0, bytes.length / UUID_BYTES)
}
