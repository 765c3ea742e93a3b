import { join } from 'node:path'

/**
 * The reference page: Swagger UI from its npm package, so that it works on a machine without internet access. Its content
 * security policy forbids loading anything from other servers.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** The headers of the page and of everything that it loads. */
export function docsHeaders(type: string): Record<string, string> {
  return { 'content-type': type, 'content-security-policy': POLICY, 'x-content-type-options': 'nosniff' }
}

/** The start script comes first: it sets the theme before anything is drawn, and starts Swagger UI once the page is loaded. */
export const DOCS_PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Agent Run Service: API reference</title>
<link rel="icon" href="data:,">
<script src="/docs/start.js"></script>
<link rel="stylesheet" href="/docs/swagger-ui.css">
<link rel="stylesheet" href="/docs/style.css">
<script src="/docs/swagger-ui-bundle.js" defer></script>
</head>
<body>
<header class="docs-head">
<a href="/">Dashboard</a>
<a href="/docs/json">OpenAPI document</a>
<button type="button" id="theme">Theme</button>
</header>
<main id="reference"></main>
</body>
</html>
`

const SCRIPT = 'text/javascript; charset=utf-8'
const STYLE = 'text/css; charset=utf-8'
const own = (name: string) => join(import.meta.dir, 'page', name)
const swagger = (name: string) => Bun.resolveSync(`swagger-ui-dist/${name}`, import.meta.dir)

/** The files that the page loads, by the last part of their URL. */
export const DOCS_ASSETS: readonly { readonly name: string; readonly type: string; readonly path: string }[] = [
  { name: 'start.js', type: SCRIPT, path: own('start.js') },
  { name: 'style.css', type: STYLE, path: own('style.css') },
  { name: 'swagger-ui.css', type: STYLE, path: swagger('swagger-ui.css') },
  { name: 'swagger-ui-bundle.js', type: SCRIPT, path: swagger('swagger-ui-bundle.js') },
]
