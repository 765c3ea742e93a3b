import { crc32 } from 'node:zlib'
import { uuidFromWords } from '../../src/clickhouse/bytes.ts'
import { frameBytes, writeFrame } from '../../src/journal/log/frame.ts'
import { type FrameSeal, NO_CHECK } from '../../src/journal/log/seal.ts'
import { runRef } from './events.ts'

/** A frame of the current format written by an attacker with another key, or one of the old format, which needs none. */
export function forgedFrame(seal: FrameSeal | 'old', firstSeq: number): Buffer {
  const block = Buffer.from('a block that was never reported')
  if (seal === 'old') return oldFrame('event', firstSeq, [{ ...runRef(), rows: 1 }], block)
  const runs = [{ ...runRef(), rows: 1 }]
  const draft = {
    kind: 'event',
    firstSeq,
    rows: 1,
    receivedAt: 1,
    runs,
    outboxIds: [],
    blockBytes: block.length,
  } as const
  const whole = { ...draft, padding: 0 }
  const bytes = Buffer.alloc(frameBytes(whole))
  writeFrame(bytes, 0, whole, [block], { seal, at: 0, before: NO_CHECK })
  return bytes
}

export interface OldSpan {
  readonly workspaceId: string
  readonly agentId: string
  readonly runId: string
  readonly rows: number
}

const KINDS = ['event', 'task', 'run']

/** A frame as versions before "ARJ2" wrote it: see `journal/local/old-frame.ts`. */
export function oldFrame(
  kind: string,
  firstSeq: number,
  runs: readonly OldSpan[],
  block: Uint8Array,
  outboxIds: readonly number[] = [],
  receivedAt = 1_700_000_000_000,
): Buffer {
  const head = Buffer.alloc(56 + runs.length * 52 + outboxIds.length * 8)
  head.write('ARJ1')
  head.writeUInt32LE(head.length, 4)
  head.writeUInt32LE(block.length, 8)
  head.writeUInt32LE(crc32(block), 16)
  head.writeUInt32LE(KINDS.indexOf(kind), 20)
  head.writeUInt32LE(
    runs.reduce((sum, span) => sum + span.rows, 0),
    24,
  )
  head.writeUInt32LE(runs.length, 28)
  head.writeUInt32LE(outboxIds.length, 32)
  head.writeDoubleLE(firstSeq, 40)
  head.writeDoubleLE(receivedAt, 48)
  let at = 56
  for (const { workspaceId, agentId, runId, rows } of runs) {
    for (const id of [workspaceId, agentId, runId]) at += storedUuid(id).copy(head, at)
    at = head.writeUInt32LE(rows, at)
  }
  for (const id of outboxIds) at = head.writeDoubleLE(id, at)
  head.writeUInt32LE(crc32(head.subarray(20), crc32(head.subarray(4, 12))), 12)
  return Buffer.concat([head, block])
}

/** A UUID as stored in a column: its two halves as little-endian 64-bit integers. */
function storedUuid(uuid: string): Buffer {
  const bytes = Buffer.from(uuid.replaceAll('-', ''), 'hex')
  return Buffer.concat([bytes.subarray(0, 8).reverse(), bytes.subarray(8).reverse()])
}

/** The run ids of adjacent rows that make a column contain these bytes. */
export function runIdsOf(bytes: Buffer): string[] {
  const words = new Uint32Array(4)
  return Array.from({ length: Math.ceil(bytes.length / 16) }, (_, row) => {
    const part = Buffer.alloc(16)
    bytes.copy(part, 0, row * 16)
    for (let i = 0; i < 4; i++) words[i] = part.readUInt32LE(i * 4)
    return uuidFromWords(words, 0)
  })
}
