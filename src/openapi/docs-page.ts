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

export const DOCS_PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Agent Run Service: API reference</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/swagger-ui.css">
</head>
<body>
<div id="reference"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`

/** No `validatorUrl`, because Swagger's validator is a server on the internet. */
export const DOCS_SCRIPT = `SwaggerUIBundle({
  url: '/docs/json',
  dom_id: '#reference',
  deepLinking: true,
  docExpansion: 'list',
  displayRequestDuration: true,
  persistAuthorization: true,
  validatorUrl: null,
})
`

/** The files of the package that the page loads, by the last part of their URL. */
export const DOCS_ASSETS: readonly { readonly name: string; readonly type: string; readonly path: string }[] = [
  { name: 'swagger-ui.css', type: 'text/css; charset=utf-8' },
  { name: 'swagger-ui-bundle.js', type: 'text/javascript; charset=utf-8' },
].map((file) => ({ ...file, path: Bun.resolveSync(`swagger-ui-dist/${file.name}`, import.meta.dir) }))
