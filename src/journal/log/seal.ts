/** Length of {@link FrameSeal.marker}. */
export const MARKER_BYTES = 12
/** Length of a frame's check. */
export const CHECK_BYTES = 16
/** The previous check of the first frame of a segment or stream. */
export const NO_CHECK = Buffer.alloc(CHECK_BYTES)

const MAGIC = Buffer.from('ARJ1')
const LOCATION_BYTES = 16

/**
 * Distinguishes the frames of one segment, or of one commit in a stream, from any other bytes. The journal's key is
 * secret, so callers cannot forge a frame within the data they report.
 */
export class FrameSeal {
  /** The first bytes of each frame: a magic number and a keyed hash of the epoch. */
  readonly marker: Buffer
  private readonly location = Buffer.alloc(LOCATION_BYTES)

  /** @param placeSeq the position that names the segment, or the stream sequence of the commit */
  constructor(
    private readonly key: Buffer,
    epoch: string,
    placeSeq: number,
  ) {
    this.marker = Buffer.concat([MAGIC, keyed(key).update(`epoch ${epoch}`).digest()]).subarray(0, MARKER_BYTES)
    this.location.writeDoubleLE(placeSeq, 0)
  }

  /**
   * The keyed check of a frame at byte `at` of the segment or payload. A frame that was copied elsewhere does not pass.
   * @param parts the checked parts of its head, in order
   */
  check(at: number, ...parts: readonly Buffer[]): Buffer {
    this.location.writeDoubleLE(at, 8)
    const hasher = keyed(this.key).update(this.location)
    for (const part of parts) hasher.update(part)
    return hasher.digest().subarray(0, CHECK_BYTES)
  }
}

function keyed(key: Buffer): Bun.CryptoHasher {
  return new Bun.CryptoHasher('sha256', key)
}
