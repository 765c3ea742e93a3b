import { Lexer, type Token, type TokensList } from 'marked'

/** Longer texts are shown as they are. */
const LENGTH_MAX = 60_000
/** Deeper parts stay text. Quotes, lists and emphasis are parsed by recursion, and a message may be nothing but their marks. */
const NESTING_MAX = 12
/** Links, emphasis and code of a longer paragraph stay text: the time to find them grows with the square of its length. */
const PARAGRAPH_LENGTH_MAX = 4_000

/** The tokens of a text in Markdown; null if it is to be shown as it is. Whatever the text is, it takes little time. */
export function markdownTokens(text: string): readonly Token[] | null {
  if (text.length > LENGTH_MAX) return null
  try {
    return new BoundedLexer().lex(text)
  } catch {
    // A bug of the parser: the text is what matters.
    return null
  }
}

class BoundedLexer extends Lexer {
  private nesting = 0

  override blockTokens(src: string, tokens?: Token[], lastParagraphClipped?: boolean): Token[]
  override blockTokens(src: string, tokens?: TokensList, lastParagraphClipped?: boolean): TokensList
  override blockTokens(src: string, tokens: Token[] = [], lastParagraphClipped?: boolean): Token[] {
    return this.nested(src, tokens, () => super.blockTokens(src, tokens, lastParagraphClipped))
  }

  override inlineTokens(src: string, tokens: Token[] = []): Token[] {
    if (src.length > PARAGRAPH_LENGTH_MAX) return plain(src, tokens)
    return this.nested(src, tokens, () => super.inlineTokens(src, tokens))
  }

  private nested(src: string, tokens: Token[], parse: () => Token[]): Token[] {
    if (this.nesting === NESTING_MAX) return plain(src, tokens)
    this.nesting++
    try {
      return parse()
    } finally {
      this.nesting--
    }
  }
}

function plain(text: string, tokens: Token[]): Token[] {
  tokens.push({ type: 'text', raw: text, text })
  return tokens
}
