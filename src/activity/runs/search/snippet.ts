import { PUNCTUATION, type Term } from './search-query.ts'

/** A piece of a snippet. `match` marks what was searched. */
interface SnippetPiece {
  readonly text: string
  readonly match?: true
}

/** UTF-16 units before the first match, and in all. */
const BEFORE = 60
const LENGTH = 200
const WORD_CHARACTER = `(?![${PUNCTUATION}])[a-zA-Z0-9\\u{80}-\\u{10ffff}]`

/** Replacements of JSON's escapes. Other escapes stay as they are. */
const UNESCAPED: ReadonlyMap<string, string> = new Map([
  ['\\n', ' '],
  ['\\r', ' '],
  ['\\t', ' '],
  ['\\"', '"'],
  ['\\\\', '\\'],
  ['\\/', '/'],
])

/** The part of a text, such as JSON, around the first term, with all terms marked. */
export function snippetOf(json: string, terms: readonly Term[]): SnippetPiece[] {
  const text = json.replace(/\\./g, (sequence) => UNESCAPED.get(sequence) ?? sequence).replace(/\s+/g, ' ')
  const pattern = new RegExp(terms.map(patternOf).join('|'), 'giu')
  const at = text.search(pattern)
  const [from, to] = bounds(text, Math.max(0, at))
  const pieces: SnippetPiece[] = []
  const add = (piece: string, isMatch: boolean) => {
    if (piece !== '') pieces.push(isMatch ? { text: piece, match: true } : { text: piece })
  }
  const shown = text.slice(from, to)
  let end = 0
  if (from > 0) add('…', false)
  for (const found of shown.matchAll(pattern)) {
    add(shown.slice(end, found.index), false)
    add(found[0], true)
    end = found.index + found[0].length
  }
  add(shown.slice(end) + (to < text.length ? '…' : ''), false)
  return pieces
}

/** The part around `at` to show, from the beginning of a word to the end of one. */
function bounds(text: string, at: number): [from: number, to: number] {
  let from = Math.max(0, at - BEFORE)
  if (from > 0) from = Math.max(from, text.lastIndexOf(' ', at - 1) < from ? from : text.indexOf(' ', from) + 1)
  let to = Math.min(text.length, from + LENGTH)
  if (to < text.length && text.lastIndexOf(' ', to) > at + BEFORE) to = text.lastIndexOf(' ', to)
  // Never between the surrogates of a character.
  if (/[\udc00-\udfff]/.test(text[from] ?? '')) from++
  if (/[\udc00-\udfff]/.test(text[to] ?? '')) to++
  return [from, to]
}

function patternOf({ text, isWord }: Term): string {
  const literal = text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&').replace(/\s+/g, '\\s+')
  return isWord ? `(?<!${WORD_CHARACTER})${literal}(?!${WORD_CHARACTER})` : literal
}
