/**
 * Checks an invariant of this program, which no input may break.
 * @param message states the invariant; keep it cheap to build, because it is built on every call
 * @throws Error when the condition is false
 */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${message}`)
}
