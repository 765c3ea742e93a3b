import { crc32 } from 'node:zlib'

const SLOTS = 2
const NUMBER_BYTES = 8
const CHECK_BYTES = 4

/** The layout of a slot: numbers, followed by their CRC-32. */
interface SlotLayout {
  readonly slotBytes: number
  /** How many numbers. The first one grows with every write, and tells which slot is the newer one. */
  readonly numbers: number
}

/** Writes a slot at an offset of the file. @returns how many bytes were written */
export type WriteSlot<Written> = (slot: Buffer, at: number) => Written

/**
 * A few numbers in a file that survive every failed or torn write: two slots are written alternately, each with a check.
 *
 * Only a complete write makes its slot the current one. Until then the same slot is written again, because the other one
 * may be the only one that can be read.
 */
export class SlotFile {
  private readonly slot: Buffer

  private constructor(
    private readonly layout: SlotLayout,
    private current: readonly number[],
    /** The slot to write next: the older, or unreadable, one. */
    private index: number,
  ) {
    this.slot = Buffer.alloc(layout.slotBytes)
  }

  static bytes(layout: SlotLayout): number {
    return layout.slotBytes * SLOTS
  }

  /** @param bytes the file's content; may be shorter than the file will be, or empty */
  static of(bytes: Buffer, layout: SlotLayout): SlotFile {
    const [first, second] = [0, 1].map((index) => readSlot(bytes.subarray(index * layout.slotBytes), layout))
    const isSecondNewer = (second?.[0] ?? 0) > (first?.[0] ?? 0)
    const newest = isSecondNewer ? second : first
    return new SlotFile(layout, newest ?? new Array<number>(layout.numbers).fill(0), isSecondNewer ? 0 : 1)
  }

  /** The numbers of the last complete write; all 0 before the first one. */
  get numbers(): readonly number[] {
    return this.current
  }

  /** One call at a time. @throws what `write` throws, or Error for a short write; the numbers remain as they were then */
  async set(numbers: readonly number[], write: WriteSlot<Promise<number>>): Promise<void> {
    this.take(numbers, await write(this.fill(numbers), this.index * this.layout.slotBytes))
  }

  /** As `set`, without waiting. */
  setNow(numbers: readonly number[], write: WriteSlot<number>): void {
    this.take(numbers, write(this.fill(numbers), this.index * this.layout.slotBytes))
  }

  private fill(numbers: readonly number[]): Buffer {
    const { slot } = this
    let checkAt = 0
    for (const number of numbers) checkAt = slot.writeDoubleLE(number, checkAt)
    slot.writeUInt32LE(crc32(slot.subarray(0, checkAt)), checkAt)
    return slot
  }

  private take(numbers: readonly number[], bytesWritten: number): void {
    const { slotBytes } = this.layout
    if (bytesWritten < slotBytes) throw new Error(`only ${bytesWritten} of ${slotBytes} bytes were written`)
    this.current = numbers
    this.index = 1 - this.index
  }
}

/** Undefined for a slot that was never written, or torn. */
function readSlot(slot: Buffer, { numbers }: SlotLayout): number[] | undefined {
  const checkAt = numbers * NUMBER_BYTES
  if (slot.length < checkAt + CHECK_BYTES || slot.readDoubleLE(0) <= 0) return undefined
  if (slot.readUInt32LE(checkAt) !== crc32(slot.subarray(0, checkAt))) return undefined
  return Array.from({ length: numbers }, (_, i) => slot.readDoubleLE(i * NUMBER_BYTES))
}
