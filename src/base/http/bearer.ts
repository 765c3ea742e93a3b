const BEARER = /^Bearer +(\S+) *$/i
/** As it is in `OTEL_EXPORTER_OTLP_HEADERS`, of senders that do not decode it. No token contains a percent sign. */
const ENCODED_BEARER = /^Bearer%20([^\s%]+) *$/i

/**
 * Names of the sign-in cookie. Browsers accept the `__Host-` prefix only with `Secure` and for exactly this host, so no
 * other host of the domain can set that cookie; it takes precedence.
 */
export const SIGN_IN_COOKIES = { secure: '__Host-agent-run-session', plain: 'agent-run-session' } as const

/** The token of `Authorization: Bearer <token>`; undefined if the header is missing or has another form. */
export function bearerToken(request: Request): string | undefined {
  return BEARER.exec(request.headers.get('authorization') ?? '')?.[1]
}

/** The token of `Authorization: Bearer%20<token>`; undefined if the header has another form. */
export function encodedBearerToken(request: Request): string | undefined {
  return ENCODED_BEARER.exec(request.headers.get('authorization') ?? '')?.[1]
}

/** The token of an admitted request: its bearer token, or else the token in its sign-in cookie. */
export function callerToken(request: Request): string | undefined {
  return bearerToken(request) ?? signInToken(request)
}

/** The token in the sign-in cookie; undefined if the request has none. */
export function signInToken(request: Request): string | undefined {
  return cookieOf(request, SIGN_IN_COOKIES.secure) ?? cookieOf(request, SIGN_IN_COOKIES.plain)
}

/** The value of a cookie; undefined if the request does not have it. */
export function cookieOf(request: Request, name: string): string | undefined {
  for (const pair of request.headers.get('cookie')?.split(';') ?? []) {
    const at = pair.indexOf('=')
    if (at > 0 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim()
  }
  return undefined
}
