/** Tokens that tell when they were sent, as in `@1767225600000.125 `: Unix milliseconds. One machine has one clock. */

/** Finds them in whatever they have been wrapped into; the first group is the time. */
export const STAMP = /@(\d+\.\d{3}) /g

export function stampNow(): string {
  return `@${now().toFixed(3)} `
}

/** Unix milliseconds, with fractions. */
export function now(): number {
  return performance.timeOrigin + performance.now()
}
