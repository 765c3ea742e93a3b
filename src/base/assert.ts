/**
 * Checks an invariant of the code. A condition that a caller, a store or a network can break is an error of its own, not an
 * assertion.
 * @throws Error naming the invariant that does not hold
 */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${message}`)
}
