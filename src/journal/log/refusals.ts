import { ApiError } from '../../http/errors.ts'

/** Reasons to refuse an append. */

export function shuttingDown(): ApiError {
  return new ApiError('UNAVAILABLE', 'the service is shutting down; try again')
}

export function noWorkspace(): ApiError {
  return new ApiError('FORBIDDEN', 'no workspace: the workspace of this key is being erased')
}

export function journalFull(cause?: unknown): ApiError {
  const message = 'the journal is full because ClickHouse is behind; try again'
  return new ApiError('UNAVAILABLE', message, { retryAfterSeconds: 5, cause })
}
