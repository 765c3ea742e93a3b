import { invalid } from '../../../base/errors.ts'

/** What `q` asks for (docs/runs.md#search). */
export interface SearchQuery {
  /** All must occur in the run itself, in one task, or in one event. */
  readonly terms: readonly Term[]
  /** Set when `q` may be the beginning of an id, in lower case. */
  readonly idPrefix: string | null
}

/** A word, or a text that must occur literally. */
export interface Term {
  /** As the caller wrote it. */
  readonly text: string
  /** Normalized like the column `search_text` (see the migrations). */
  readonly normal: string
  /** Its words that the index can find. */
  readonly tokens: readonly string[]
  /** Whether it is a single word, so that the index suffices and the text need not be read. */
  readonly isWord: boolean
}

export const QUERY_LENGTH_MAX = 500
const TERMS_MAX = 16
const ID_LENGTH_MIN = 4

/** `"a phrase"`, or anything without spaces. An open phrase, as while typing, ends with the query. */
const PIECE = /"([^"]*)"?|[^\s"]+/gu
/** A word, as the index splits text: ASCII letters and digits, and everything beyond ASCII. */
const TOKEN = /[a-z0-9\u{80}-\u{10ffff}]+/gu
/** Scripts without spaces between words, or with endings on them: the index cannot find their words. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u
/** Punctuation beyond ASCII, which separates words. */
export const PUNCTUATION = '“”‘’„«»‹›—–…•·、。「」（）'
/** The same expression as in the migrations. */
const SEPARATOR = new RegExp(`\\\\.|[\\n\\r\\t${PUNCTUATION}]`, 'gu')
/** An id has a digit or a mark, and no spaces. */
const ID = /^(?=.*[\d_:@.-])[^\s"]+$/u

/** Parses `q`. @throws ApiError VALIDATION_ERROR */
export function parseSearch(q: string): SearchQuery {
  const pieces = [...q.matchAll(PIECE)].map(([whole, phrase]) => (phrase ?? whole).trim())
  const terms = pieces.filter((piece) => piece !== '').map(termOf)
  if (!terms.some(({ normal }) => normal.search(TOKEN) >= 0)) throw invalid('query.q', 'expected at least one word')
  if (terms.length > TERMS_MAX) throw invalid('query.q', `expected at most ${TERMS_MAX} words and phrases`)
  const trimmed = q.trim()
  const isId = trimmed.length >= ID_LENGTH_MIN && ID.test(trimmed)
  return { terms, idPrefix: isId ? trimmed.toLowerCase() : null }
}

function termOf(text: string): Term {
  const normal = normalized(JSON.stringify(text).slice(1, -1)).trim()
  const words = normal.match(TOKEN) ?? []
  const tokens = words.filter((word) => !UNSPACED.test(word))
  return { text, normal, tokens, isWord: tokens.length === 1 && tokens[0] === normal }
}

/** Normalizes a text like the column `search_text`. */
export function normalized(text: string): string {
  return text.replace(SEPARATOR, ' ').toLowerCase()
}

/** The words and phrases that a normalized text has. */
export function termsIn(normal: string, terms: readonly Term[]): Term[] {
  const words = new Set(normal.match(TOKEN))
  return terms.filter(
    (term) => term.tokens.every((token) => words.has(token)) && (term.isWord || normal.includes(term.normal)),
  )
}
