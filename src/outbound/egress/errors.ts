import { lookup } from '../../base/lookup.ts'

/** Descriptions by error code, because Node's own messages would reveal internal addresses. */
const MEANING = lookup<string>({
  ECONNREFUSED: 'refuses connections',
  ECONNRESET: 'closed the connection',
  EPIPE: 'closed the connection',
  EHOSTUNREACH: 'cannot be reached',
  ENETUNREACH: 'cannot be reached',
  ETIMEDOUT: 'cannot be reached',
  HPE_HEADER_OVERFLOW: 'sends more headers than allowed',
  ERR_TLS_CERT_ALTNAME_INVALID: 'has a certificate for another name',
  CERT_HAS_EXPIRED: 'has a certificate that has expired',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'has a certificate that no trusted authority has signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'has a certificate that no trusted authority has signed',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'has a certificate that no trusted authority has signed',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'has a certificate that no trusted authority has signed',
})

/**
 * The guard blocked the request. The message may be shown to the model and the caller: it names the host, never a
 * secret.
 */
export class EgressRefused extends Error {
  override readonly name = 'EgressRefused'

  /** @param status of an answer that was refused; null if nothing was sent */
  constructor(
    message: string,
    readonly status: number | null = null,
  ) {
    super(message)
  }
}

/**
 * The host could not be reached, or did not respond properly. The message is as safe as that of {@link EgressRefused}.
 */
export class EgressFailed extends Error {
  override readonly name = 'EgressFailed'
}

/** Describes a failure of sockets, TLS or HTTP. @param host as the caller wrote it */
export function egressFailureOf(cause: unknown, host: string): EgressRefused | EgressFailed {
  if (cause instanceof EgressRefused || cause instanceof EgressFailed) return cause
  const code = String((cause as { code?: unknown } | null)?.code ?? 'no code')
  const meaning = MEANING.get(code) ?? (code.startsWith('HPE_') ? `does not speak HTTP (${code})` : `failed (${code})`)
  return new EgressFailed(`${host} ${meaning}`, { cause })
}
