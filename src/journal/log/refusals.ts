import { ApiError } from '../../base/errors.ts'

/** Refuses calls of a journal that is being closed. */
export function shuttingDown(): ApiError {
  return new ApiError('UNAVAILABLE', 'the service is shutting down; try again')
}

/** Refuses appends to a workspace that is being erased. */
export function noWorkspace(): ApiError {
  return new ApiError('FORBIDDEN', 'no workspace: the workspace of this key is being erased')
}

/** Refuses appends beyond the journal's limit of bytes. */
export function journalFull(cause?: unknown): ApiError {
  const message = 'the journal is full because ClickHouse is behind; try again'
  return new ApiError('UNAVAILABLE', message, { retryAfterSeconds: 5, cause })
}
