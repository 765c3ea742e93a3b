import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dir, '..', '..')

/** All pages of documentation. The samples of the reference page have a test of their own. */
export const PAGES = [
  ...['README.md', 'src/README.md', 'src/client/README.md', 'src/client/python/README.md'],
  ...['src/openapi/page/introduction.md', ...[...new Bun.Glob('docs/*.md').scanSync(ROOT)].sort()],
]

/** A fenced block of a page. */
export interface Snippet {
  /** As in `docs/sql.md:21`. */
  readonly at: string
  readonly language: string
  /** Without the indentation of the fence. */
  readonly text: string
  /** The block that directly follows this one, as its output does. */
  readonly next: Snippet | undefined
}

export function readPage(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8')
}

export function snippetsOf(page: string): readonly Snippet[] {
  const text = readPage(page)
  const snippets: (Snippet & { next: Snippet | undefined })[] = []
  let end = -1
  for (const match of text.matchAll(/^( *)```(\w*)\n([\s\S]*?)^ *```$/gm)) {
    const [all, indent = '', language = '', body = ''] = match
    const at = `${page}:${text.slice(0, match.index).split('\n').length}`
    const snippet = { at, language, text: body.replaceAll(new RegExp(`^${indent}`, 'gm'), ''), next: undefined }
    if (match.index === end + 1) snippets.at(-1)!.next = snippet
    snippets.push(snippet)
    end = match.index + all.length
  }
  return snippets
}

/** The texts of a page in one of these languages, as one program: later ones use what earlier ones define. */
export function programOf(page: string, ...languages: readonly string[]): string {
  const parts = snippetsOf(page).filter(({ language }) => languages.includes(language))
  return parts.map(({ text }) => text).join('\n')
}

/** The pages whose commands this one continues, in the same shell, as it says itself: the first one first. */
export function continuedBy(page: string): readonly string[] {
  const [, target] =
    /\bcommands?\s+here\s+continues?\s+those\s+of\s+(?:the\s+)?\[[^\]]+\]\(([^)#]+)/.exec(readPage(page)) ?? []
  if (target === undefined) return []
  const before = join(page, '..', target)
  return [...continuedBy(before), before]
}
