import { SCORE_CELLS as CELLS, type ScoreColumns } from '../../stores/journal/rows.ts'

/** From this length on, a native hash is faster. */
const LONG_BYTES_MIN = 256
const RANGES = [
  CELLS.name,
  CELLS.taskId,
  CELLS.eventId,
  CELLS.sessionId,
  CELLS.label,
  CELLS.text,
  CELLS.comment,
  CELLS.metadata,
]

/** Scratch space: a number and its words. */
const number = new Float64Array(1)
const words = new Uint32Array(number.buffer)

/**
 * A hash of everything that a score says, of 53 bits, never 0: equal for a repeat of a score, and different otherwise, but
 * for one chance in 10^15.
 * @param source its source, from 1
 */
export function contentHash({ text, cells, value, createdAt }: ScoreColumns, row: number, source: number): number {
  const at = row * CELLS.count
  const dataType = cells[at + CELLS.dataType]
  let a = Math.imul(0xdeadbeef ^ dataType, 2654435761)
  let b = Math.imul(0x41c6ce57 ^ source, 1597334677)
  const add = (word: number) => {
    a = Math.imul(a ^ word, 2654435761)
    b = Math.imul(b ^ word, 1597334677)
    a ^= a >>> 15
    b ^= b >>> 13
  }
  if (dataType <= 2) {
    number[0] = value[row]
    add(words[0])
    add(words[1])
  }
  if (!Number.isNaN(createdAt[row])) {
    number[0] = createdAt[row]
    add(words[0])
    add(words[1])
  }
  for (const range of RANGES) {
    const start = cells[at + range]
    if (start < 0) continue
    const end = cells[at + range + 1]
    add((range << 24) ^ (end - start))
    if (end - start < LONG_BYTES_MIN) {
      for (let i = start; i < end; i++) {
        a = Math.imul(a ^ text[i], 2654435761)
        b = Math.imul(b ^ text[i], 1597334677)
      }
    } else {
      const bytes = text.subarray(start, end)
      add(Bun.hash.xxHash32(bytes, 0))
      add(Bun.hash.xxHash32(bytes, 1))
    }
  }
  a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909)
  b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909)
  return 2 ** 32 * (b & 0x1fffff) + (a >>> 0) || 1
}
