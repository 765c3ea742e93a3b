const WELL_FORMED = /^[A-Za-z0-9._-]{1,128}$/
const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
/** Two characters at a time takes a quarter of the time of `ulid`, and every request needs an id. */
const PAIRS = Array.from({ length: 1024 }, (_, value) => CROCKFORD[value >> 5] + CROCKFORD[value & 31])

let atMs = 0
/** The ULID of this millisecond without its last four characters. */
let prefix = ''
let counter = 0

/** The caller's `X-Request-Id` if it is well-formed, otherwise a ULID (docs/api.md#request-ids). */
export function requestIdOf(request: Request): string {
  const given = request.headers.get('x-request-id')
  return given !== null && WELL_FORMED.test(given) ? given : nextUlid()
}

/** As unique as any ULID: the random part is new in each millisecond and counts up within it. */
function nextUlid(): string {
  const now = Date.now()
  if (now !== atMs || counter >= 1 << 20) renew(now)
  const id = prefix + PAIRS[counter >> 10] + PAIRS[counter & 1023]
  counter++
  return id
}

function renew(now: number): void {
  atMs = now
  counter = 0
  prefix = ''
  for (let rest = now, i = 0; i < 5; i++, rest = Math.floor(rest / 1024)) prefix = PAIRS[rest % 1024] + prefix
  for (const value of crypto.getRandomValues(new Uint16Array(6))) prefix += PAIRS[value & 1023]
}
