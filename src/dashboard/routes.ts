import { Elysia } from 'elysia'
import { ApiError } from '../base/errors.ts'
import { preferredEncoding } from '../http/answer.ts'
import { bundlePage, type PageFile } from './bundle.ts'

/** Nothing is loaded from other origins, no inline script runs, and no reported text becomes markup. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const SECURITY_HEADERS = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
}

/** The page is revalidated on each load; the URLs of the files that it loads contain a hash of their content. */
const ALWAYS_ASK = 'no-cache'
const NEVER_ASK = 'public, max-age=31536000, immutable'

/**
 * The dashboard (docs/specification.md#operations): `GET /`, and what it loads under `/dashboard/`. The files need no
 * key; the page asks the user for one. They are bundled on first use, so that they do not delay the start of the
 * service.
 */
export function dashboardRoutes() {
  let bundling: ReturnType<typeof bundlePage> | undefined
  const bundle = () => {
    bundling ??= bundlePage().catch((error) => {
      bundling = undefined
      throw error
    })
    return bundling
  }
  return new Elysia({ name: 'dashboard', detail: { hide: true } })
    .get('/', async ({ request }) => answer(request, (await bundle()).page, ALWAYS_ASK))
    .get('/dashboard/:file', async ({ request, params }) => {
      const file = (await bundle()).assets.get(params.file)
      if (file === undefined) throw new ApiError('NOT_FOUND', 'the dashboard has no such file; GET / returns the page')
      return answer(request, file, NEVER_ASK)
    })
}

function answer(request: Request, file: PageFile, cacheControl: string): Response {
  const encoding = preferredEncoding(request.headers.get('accept-encoding'))
  const etag = `"${file.hash}${encoding === null ? '' : `-${encoding}`}"`
  const headers = new Headers({
    ...SECURITY_HEADERS,
    'content-type': file.type,
    'cache-control': cacheControl,
    vary: 'accept-encoding',
    etag,
  })
  if (isFresh(request.headers.get('if-none-match'), etag)) return new Response(null, { status: 304, headers })
  if (encoding === null) return new Response(file.bytes, { headers })
  headers.set('content-encoding', encoding)
  return new Response(file[encoding], { headers })
}

/** A cache may have marked the tag as weak, which makes no difference for whole files. */
function isFresh(ifNoneMatch: string | null, etag: string): boolean {
  if (ifNoneMatch === null) return false
  return ifNoneMatch.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag || tag.trim() === '*')
}
