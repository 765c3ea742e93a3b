import { ptr } from 'bun:ffi'

/** Unit of writes: what disks and file systems want for direct writes, and what they write anyway. */
export const PAGE_BYTES = 4096
const POOLED_BYTES_MIN = 8 * 1024
const POOLED_BYTES_MAX = 32 * 1024 * 1024

/**
 * Memory for commits: a whole number of pages, beginning on one, as direct writes need it. Pieces are used again:
 * the first touch of fresh memory costs more than writing it to the disk (1–2 ms a megabyte on a virtual machine,
 * measured), and a busy journal needs a hundred megabytes a second.
 */
export class PagePool {
  /** Pieces at rest, by size. */
  private readonly free = new Map<number, Buffer[]>()
  private freeBytes = 0
  /** The whole piece that a buffer was cut from. */
  private readonly whole = new WeakMap<ArrayBufferLike, Buffer>()

  /** A buffer for at least `bytes`, its pages filled up with zeros. */
  take(bytes: number): Buffer {
    const length = Math.ceil(bytes / PAGE_BYTES) * PAGE_BYTES
    const piece = length < POOLED_BYTES_MIN ? allocate(length) : this.takePiece(sizeClass(length))
    return piece.subarray(0, length).fill(0, bytes)
  }

  /** Takes a buffer back. Nobody may look at it any more. */
  give(buffer: Buffer): void {
    const piece = this.whole.get(buffer.buffer)
    if (piece === undefined || this.freeBytes + piece.length > POOLED_BYTES_MAX) return
    this.freeBytes += piece.length
    const rest = this.free.get(piece.length)
    if (rest === undefined) this.free.set(piece.length, [piece])
    else rest.push(piece)
  }

  private takePiece(length: number): Buffer {
    const rested = this.free.get(length)?.pop()
    if (rested !== undefined) {
      this.freeBytes -= length
      return rested
    }
    const piece = allocate(length)
    this.whole.set(piece.buffer, piece)
    return piece
  }
}

/** Sizes are rounded up to a power of two, or halfway to it, so that a piece fits the next commit. */
function sizeClass(bytes: number): number {
  const power = 2 ** Math.ceil(Math.log2(bytes))
  return bytes <= power * 0.75 ? power * 0.75 : power
}

function allocate(length: number): Buffer {
  const room = Buffer.allocUnsafeSlow(length + PAGE_BYTES)
  const ahead = (PAGE_BYTES - (ptr(room) % PAGE_BYTES)) % PAGE_BYTES
  return room.subarray(ahead, ahead + length)
}
