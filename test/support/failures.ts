import { ApiError } from '../../src/base/errors.ts'

/** What a promise is rejected with; undefined if it is not. */
export function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (failure: unknown) => failure,
  )
}

/** The seconds that a call over its limit must wait; 0 if it is allowed. */
export function waitOf(call: () => unknown): number {
  try {
    call()
    return 0
  } catch (error) {
    if (error instanceof ApiError && error.code === 'RATE_LIMITED') return error.retryAfterSeconds!
    throw error
  }
}
