import { ptr } from 'bun:ffi'
import { assert } from '../../../base/assert.ts'

/** Unit of writes, as direct I/O requires. */
export const PAGE_BYTES = 4096
const POOLED_BYTES_MIN = 8 * 1024
const POOLED_BYTES_MAX = 32 * 1024 * 1024

/**
 * Page-aligned commit buffers of whole pages, as direct I/O requires. Allocation is expensive, so commit buffers are
 * pooled: the first access to new memory costs more than writing it to disk (1–2 ms per megabyte, measured on a virtual
 * machine), and a busy journal needs a hundred megabytes per second.
 */
export class PagePool {
  /** Free buffers by size. */
  private readonly free = new Map<number, Buffer[]>()
  private freeBytes = 0
  /** The pooled buffer that a returned view belongs to. */
  private readonly pooled = new WeakMap<ArrayBufferLike, { readonly piece: Buffer; isFree: boolean }>()

  /** A buffer of at least `bytes` bytes; the rest of the last page is zero. */
  take(bytes: number): Buffer {
    const length = Math.ceil(bytes / PAGE_BYTES) * PAGE_BYTES
    const piece = length < POOLED_BYTES_MIN ? allocate(length) : this.takePiece(sizeClass(length))
    return piece.subarray(0, length).fill(0, bytes)
  }

  /** Returns a buffer to the pool. It must not be used any more. */
  give(buffer: Buffer): void {
    const owner = this.pooled.get(buffer.buffer)
    if (owner === undefined) return
    // Two commits in the same memory would mix the rows of workspaces.
    assert(!owner.isFree, 'a commit buffer is returned to the pool once')
    const { piece } = owner
    if (this.freeBytes + piece.length > POOLED_BYTES_MAX) return
    owner.isFree = true
    this.freeBytes += piece.length
    const others = this.free.get(piece.length)
    if (others === undefined) this.free.set(piece.length, [piece])
    else others.push(piece)
  }

  private takePiece(length: number): Buffer {
    const known = this.free.get(length)?.pop()
    const piece = known ?? allocate(length)
    if (known !== undefined) this.freeBytes -= length
    this.pooled.set(piece.buffer, { piece, isFree: false })
    return piece
  }
}

/** Rounds up to a power of two, or three quarters of one, so that buffers fit later commits. */
function sizeClass(bytes: number): number {
  const power = 2 ** Math.ceil(Math.log2(bytes))
  return bytes <= power * 0.75 ? power * 0.75 : power
}

function allocate(length: number): Buffer {
  const room = Buffer.allocUnsafeSlow(length + PAGE_BYTES)
  const ahead = (PAGE_BYTES - (ptr(room) % PAGE_BYTES)) % PAGE_BYTES
  return room.subarray(ahead, ahead + length)
}
