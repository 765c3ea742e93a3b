import type { Steps } from '../../../base/http/shared-slice.ts'
import { normalized, type Term, termsIn, wordsIn } from './search-query.ts'

/** The terms that a text has. */
export interface TermsFound {
  readonly terms: readonly Term[]
  /** The text, or the part of it around the first of the terms. */
  readonly excerpt: string
}

/** Longer texts are normalized only near what may be a term: the rest is left to native search. */
const WHOLE_LENGTH_MAX = 16_384
/** In a long text, after so many places that only look like a term, the others count as not found. */
const CANDIDATES_MAX = 500
/** What is read around a word, to see whether it is a whole one. Escapes before it take a few characters. */
const MARGIN = 64

/** Which terms a text has. Takes time in proportion to its length only for native search, one word in each step. */
export function* termsOfText(text: string, terms: readonly Term[]): Steps<TermsFound> {
  if (text.length <= WHOLE_LENGTH_MAX) return { terms: termsIn(normalized(text), terms), excerpt: text }
  const long = new LongText(text.toLowerCase())
  yield
  const found: Term[] = []
  let first = text.length
  for (const term of terms) {
    const at = yield* long.find(term)
    if (at === -1) continue
    found.push(term)
    first = Math.min(first, at)
  }
  const from = Math.max(0, Math.min(first, text.length) - WHOLE_LENGTH_MAX / 2)
  return { terms: found, excerpt: text.slice(from, from + WHOLE_LENGTH_MAX) }
}

class LongText {
  private candidates = 0

  constructor(private readonly lower: string) {}

  /** @returns where the term is, about; -1 if it is not there */
  *find({ normal, tokens, isWord }: Term): Steps<number> {
    let at = -1
    for (const token of tokens) {
      at = this.search(token, MARGIN, (near) => wordsIn(near).has(token))
      yield
      if (at === -1) return -1
    }
    if (isWord) return at
    // What has no spaces stands in the text as in the term. A separator may be two characters of the text.
    const anchor = normal.split(' ').reduce((a, b) => (b.length > a.length ? b : a))
    at = this.search(anchor, 2 * normal.length, (near) => near.includes(normal))
    yield
    return at
  }

  private search(anchor: string, margin: number, isTerm: (near: string) => boolean): number {
    let at = this.lower.indexOf(anchor)
    while (at !== -1 && this.candidates++ < CANDIDATES_MAX) {
      if (isTerm(normalized(this.lower.slice(Math.max(0, at - margin), at + anchor.length + margin)))) return at
      at = this.lower.indexOf(anchor, at + anchor.length)
    }
    return -1
  }
}
