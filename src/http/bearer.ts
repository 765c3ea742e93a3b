const BEARER = /^Bearer +(\S+) *$/i

/** The token of `Authorization: Bearer <token>`; undefined if the header is missing or has another form. */
export function bearerToken(request: Request): string | undefined {
  return BEARER.exec(request.headers.get('authorization') ?? '')?.[1]
}
