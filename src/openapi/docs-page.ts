import { join } from 'node:path'
import { type PageBundle, pageBundle } from '../base/http/page-bundle.ts'

/** Nothing is loaded from other servers, so that the page works on a machine without internet access. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const SECURITY_HEADERS = { 'content-security-policy': POLICY, 'x-content-type-options': 'nosniff' }

/** The headers of the OpenAPI document and of the guides. */
export function docsHeaders(type: string): Record<string, string> {
  return { 'content-type': type, ...SECURITY_HEADERS }
}

/** The reference page of `GET /docs`, which reads the OpenAPI document. */
export function docsPage(): PageBundle {
  const entry = join(import.meta.dir, 'page', 'index.html')
  return pageBundle({ entry, publicPath: '/docs/assets/', headers: SECURITY_HEADERS })
}
