import { ptr } from 'bun:ffi'

/** Unit of writes: what disks and file systems want for direct writes, and what they write anyway. */
const PAGE_BYTES = 4096

/** A buffer for at least `bytes`, a whole number of pages long and beginning on one in memory, as direct writes need it. Zero behind `bytes`. */
export function pages(bytes: number): Buffer {
  const length = Math.ceil(bytes / PAGE_BYTES) * PAGE_BYTES
  const room = Buffer.allocUnsafeSlow(length + PAGE_BYTES)
  const ahead = (PAGE_BYTES - (ptr(room) % PAGE_BYTES)) % PAGE_BYTES
  return room.subarray(ahead, ahead + length).fill(0, bytes)
}
