/**
 * Checks what must hold whatever callers send. The message is a constant, so that a check costs nothing while it holds.
 * @throws Error when it does not hold
 */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${message}`)
}
