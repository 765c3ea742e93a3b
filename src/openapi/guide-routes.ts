import { Elysia } from 'elysia'
import { ALWAYS_ASK, type StaticFile, sendStaticFile, toStaticFile } from '../base/http/static-file.ts'
import { docsHeaders } from './docs-page.ts'
import { guides, guideText, llmsText } from './guides.ts'

const MARKDOWN = 'text/markdown; charset=utf-8'
/** Browsers show it, where they would save Markdown to a file. */
const PLAIN = 'text/plain; charset=utf-8'

/**
 * `GET /llms.txt`, and the guides at `/docs/*.md` (docs/api.md#calls-without-a-key). No key; the same for everyone. Each
 * guide has a route of its own, so no path reaches another file. A guide is read and compressed on its first request.
 *
 * @param publicUrl the origin in links; undefined: that of the request
 */
export function guideRoutes({ publicUrl }: { readonly publicUrl: string | undefined }) {
  const files = new Map<string, StaticFile>()
  let last: { readonly origin: string; readonly file: StaticFile } | undefined
  const app = new Elysia({ name: 'guides', detail: { hide: true } })
  app.get('/llms.txt', ({ request }) => {
    const origin = publicUrl ?? new URL(request.url).origin
    // Only the last one is kept: every Host header makes another.
    if (last?.origin !== origin) last = { origin, file: toFile(llmsText(origin), PLAIN) }
    return sendStaticFile(request, last.file, headersOf(PLAIN))
  })
  for (const guide of guides())
    app.get(guide.path, ({ request }) => {
      const file = files.get(guide.name) ?? toFile(guideText(guide), MARKDOWN)
      files.set(guide.name, file)
      return sendStaticFile(request, file, headersOf(MARKDOWN))
    })
  return app
}

function toFile(text: string, type: string): StaticFile {
  return toStaticFile(new TextEncoder().encode(text), type)
}

function headersOf(type: string): Record<string, string> {
  return { ...docsHeaders(type), 'cache-control': ALWAYS_ASK }
}
