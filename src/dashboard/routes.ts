import { join } from 'node:path'
import { Elysia } from 'elysia'
import { pageBundle } from '../base/http/page-bundle.ts'

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
 * The dashboard (docs/api.md#calls-without-a-key): `GET /`, and what it loads under `/dashboard/`. The files need no
 * key; the page asks the user for one.
 */
export function dashboardRoutes() {
  const entry = join(import.meta.dir, 'page', 'index.html')
  const bundle = pageBundle({ entry, publicPath: '/dashboard/', headers: SECURITY_HEADERS })
  return new Elysia({ name: 'dashboard', detail: { hide: true } })
    .get('/', ({ request }) => bundle.page(request))
    .get('/dashboard/:file', ({ request, params }) => bundle.asset(request, params.file))
}
