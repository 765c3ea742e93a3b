import { ApiError, type ErrorCode, STATUS_OF } from '../../base/errors.ts'
import { lookup } from '../../base/lookup.ts'
import { jsonAnswer } from '../kit.ts'

/** An error of JSON-RPC, with the code and the data that the client gets. */
export class RpcError extends Error {
  override readonly name = 'RpcError'

  constructor(
    readonly code: number,
    message: string,
    readonly data?: unknown,
  ) {
    super(message)
  }
}

export const PARSE_ERROR = -32_700
export const INVALID_REQUEST = -32_600
export const METHOD_NOT_FOUND = -32_601
export const INVALID_PARAMS = -32_602
export const INTERNAL_ERROR = -32_603
/** Before revision 2026-07-28; the package answers INVALID_PARAMS to later clients. */
export const RESOURCE_NOT_FOUND = -32_002

/**
 * Codes of our errors. Servers may assign -32000 to -32019, where -32000 and -32001 mean something to clients, and -32002
 * did so before revision 2026-07-28.
 */
const RPC_CODES = lookup<number>({
  VALIDATION_ERROR: INVALID_PARAMS,
  NOT_FOUND: RESOURCE_NOT_FOUND,
  UNAUTHENTICATED: -32_010,
  FORBIDDEN: -32_011,
  METHOD_NOT_ALLOWED: -32_012,
  CONFLICT: -32_013,
  PAYLOAD_TOO_LARGE: -32_014,
  RATE_LIMITED: -32_015,
  UNAVAILABLE: -32_016,
  INTERNAL: INTERNAL_ERROR,
} satisfies Record<ErrorCode, number>)

/** The error of JSON-RPC for one of ours, which `data.code` names. */
export function rpcErrorOf({ code, message, retryAfterSeconds }: ApiError): RpcError {
  const retry = retryAfterSeconds === undefined ? {} : { retry_after_seconds: retryAfterSeconds }
  return new RpcError(RPC_CODES.get(code) ?? INTERNAL_ERROR, message, { code, ...retry })
}

/** A response of HTTP that carries an error instead of the answer to a request. */
export function errorResponse(error: ApiError | RpcError, id: unknown, status?: number): Response {
  const { code, message, data } = error instanceof ApiError ? rpcErrorOf(error) : error
  const httpStatus = status ?? (error instanceof ApiError ? STATUS_OF[error.code] : 400)
  return jsonAnswer(httpStatus, errorText({ code, message, data }, id))
}

export function errorText({ code, message, data }: Pick<RpcError, 'code' | 'message' | 'data'>, id: unknown): string {
  return JSON.stringify({ jsonrpc: '2.0', id: id ?? null, error: { code, message, data } })
}
