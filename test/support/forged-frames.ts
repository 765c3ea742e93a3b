import { uuidFromWords } from '../../src/stores/clickhouse/bytes.ts'
import { type FrameSeal, frameBytes, NO_CHECK, writeFrame } from '../../src/stores/journal/log/frame.ts'
import { runRef } from './events.ts'

/** A frame written by an attacker, whose seal has another key. */
export function forgedFrame(seal: FrameSeal, firstSeq: number): Buffer {
  const block = Buffer.from('a block that was never reported')
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
