import { ApiError } from '../../http/errors.ts'

/** Why the journal does not take an append, whatever its disk could do. */

export function shuttingDown(): ApiError {
  return new ApiError('UNAVAILABLE', 'the service is shutting down; send the call again')
}

export function noWorkspace(): ApiError {
  return new ApiError('FORBIDDEN', 'no workspace: the workspace of this key is being erased')
}
