/** Tokens with their send time, as in `@1767225600000.125 `: Unix milliseconds. All processes share the machine's clock. */

/** Finds them in any text; the first group is the time. */
export const STAMP = /@(\d+\.\d{3}) /g

export function stampNow(): string {
  return `@${now().toFixed(3)} `
}

/** Unix milliseconds, with fractions. */
export function now(): number {
  return performance.timeOrigin + performance.now()
}
