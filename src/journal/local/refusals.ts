import { ApiError } from '../../http/errors.ts'

/** Reasons to refuse an append that do not depend on the disk. */

export function shuttingDown(): ApiError {
  return new ApiError('UNAVAILABLE', 'the service is shutting down; try again')
}

export function noWorkspace(): ApiError {
  return new ApiError('FORBIDDEN', 'no workspace: the workspace of this key is being erased')
}
