import { basename, join } from 'node:path'
import { Elysia } from 'elysia'
import { ApiError } from '../base/errors.ts'
import { IS_PACKAGE } from '../base/script.ts'
import { ALWAYS_ASK, NEVER_ASK, type StaticFile, sendStaticFile, toStaticFile } from '../http/static-file.ts'

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
  return (
    new Elysia({ name: 'dashboard', detail: { hide: true } })
      // The URLs of the files that the page loads contain a hash of their content.
      .get('/', async ({ request }) => answer(request, (await bundle()).page, ALWAYS_ASK))
      .get('/dashboard/:file', async ({ request, params }) => {
        const file = (await bundle()).assets.get(params.file)
        if (file === undefined)
          throw new ApiError('NOT_FOUND', 'the dashboard has no such file; GET / returns the page')
        return answer(request, file, NEVER_ASK)
      })
  )
}

function answer(request: Request, file: StaticFile, cacheControl: string): Response {
  return sendStaticFile(request, file, { ...SECURITY_HEADERS, 'cache-control': cacheControl })
}

/**
 * Bundles `page/` into the files that browsers load. Takes about 30 ms, once. @throws AggregateError if it does not
 * compile
 */
async function bundlePage() {
  const { outputs } = await Bun.build({
    entrypoints: [join(import.meta.dir, 'page', 'index.html')],
    publicPath: '/dashboard/',
    target: 'browser',
    minify: true,
    // The page must not contain the service's environment.
    env: 'disable',
    // `base/script.ts` asks for its folder, which the page must not contain either.
    define: { 'import.meta.dir': JSON.stringify(IS_PACKAGE ? '/node_modules/' : '') },
    // The SQL editor is a chunk that is loaded with its view.
    splitting: true,
  })
  let page: StaticFile | undefined
  // By the last segment of their URL, which contains a hash of their content.
  const assets = new Map<string, StaticFile>()
  for (const output of outputs) {
    const file = toStaticFile(new Uint8Array(await output.arrayBuffer()), output.type)
    if (output.path.endsWith('.html')) page = file
    else assets.set(basename(output.path), file)
  }
  if (page === undefined) throw new Error('the bundle of the dashboard has no page')
  return { page, assets }
}
