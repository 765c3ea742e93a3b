/** Length of {@link FrameSeal.marker}. */
export const MARKER_BYTES = 12
/** Length of a frame's check. */
export const CHECK_BYTES = 16
/** Stands for the frame before the first one of a segment. */
export const NO_CHECK = Buffer.alloc(CHECK_BYTES)

const MAGIC = Buffer.from('ARJ2')
const PLACE_BYTES = 16

/**
 * What tells the frames of one segment from any other bytes. The journal's key is never shown, so nobody outside can make
 * bytes that pass, whatever they report: rows full of bytes that look like frames stay rows.
 */
export class FrameSeal {
  /** How each frame begins: what it is, and its epoch in a form that only the key can make. */
  readonly marker: Buffer
  private readonly place = Buffer.alloc(PLACE_BYTES)

  /** @param segmentSeq the position that names the segment */
  constructor(
    private readonly key: Buffer,
    epoch: string,
    segmentSeq: number,
  ) {
    this.marker = Buffer.concat([MAGIC, keyed(key).update(`epoch ${epoch}`).digest()]).subarray(0, MARKER_BYTES)
    this.place.writeDoubleLE(segmentSeq, 0)
  }

  /**
   * The keyed check of a frame that stands at byte `at` of the segment: a frame copied to another place does not pass.
   * @param parts what is checked of its head, in order
   */
  check(at: number, ...parts: readonly Buffer[]): Buffer {
    this.place.writeDoubleLE(at, 8)
    const hasher = keyed(this.key).update(this.place)
    for (const part of parts) hasher.update(part)
    return hasher.digest().subarray(0, CHECK_BYTES)
  }
}

function keyed(key: Buffer): Bun.CryptoHasher {
  return new Bun.CryptoHasher('sha256', key)
}
