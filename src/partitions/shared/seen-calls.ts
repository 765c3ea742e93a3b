/** How far calls of one sender may overtake each other. */
const WINDOW = 65_536
/** Senders remembered: 8 KiB each. A cluster has far fewer, even when its nodes start again and again. */
const SENDERS_MAX = 1_024

interface SentCall {
  readonly from: string
  /** Counts the calls of this sender. */
  readonly number: number
  /** When it was signed, Unix milliseconds. */
  readonly at: number
}

/** The calls of one sender: of the last {@link WINDOW} numbers, one bit each. */
class Sender {
  lastMs = 0
  private highest = 0
  private readonly bits = new Uint32Array(WINDOW / 32)

  add(number: number): boolean {
    if (number <= this.highest - WINDOW) return false
    // Bits of numbers that have left the window are used again.
    if (number - this.highest >= WINDOW) this.bits.fill(0)
    else for (let next = this.highest + 1; next <= number; next++) this.bits[wordOf(next)] &= ~bitOf(next)
    this.highest = Math.max(this.highest, number)
    if ((this.bits[wordOf(number)] & bitOf(number)) !== 0) return false
    this.bits[wordOf(number)] |= bitOf(number)
    return true
  }
}

function wordOf(number: number): number {
  return (number % WINDOW) >>> 5
}

function bitOf(number: number): number {
  return 1 << (number & 31)
}

/** Signed calls that have arrived, so that a repeated one is refused. Its memory is bounded by the number of senders. */
export class SeenCalls {
  private readonly senders = new Map<string, Sender>()

  /** @param validMs older calls are refused by their age */
  constructor(private readonly validMs: number) {}

  /** @returns false for a call that was added before, or is too old to tell, and when there are too many senders */
  add({ from, number, at }: SentCall, now: number): boolean {
    if (!Number.isSafeInteger(number) || number < 1) return false
    let sender = this.senders.get(from)
    if (sender === undefined) {
      if (this.senders.size >= SENDERS_MAX) this.forgetOld(now)
      if (this.senders.size >= SENDERS_MAX) return false
      sender = new Sender()
      this.senders.set(from, sender)
    }
    sender.lastMs = Math.max(sender.lastMs, at)
    return sender.add(number)
  }

  private forgetOld(now: number): void {
    for (const [from, { lastMs }] of this.senders) if (now - lastMs > this.validMs) this.senders.delete(from)
  }
}
