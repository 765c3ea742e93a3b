import { Lexer, type Token, type Tokens, type TokensList } from 'marked'
import type { ComponentChildren } from 'preact'
import { useMemo } from 'preact/hooks'
import { Scrollable } from './scrollable.tsx'

const SAFE_LINK = /^(https?:|mailto:)/i

/**
 * Markdown of models and people. Each token becomes an element of ours; raw HTML stays text, images become links, and links
 * lead only to the web.
 */
export function Markdown({ text }: { readonly text: string }) {
  const tokens = useMemo(() => markdownTokens(text), [text])
  return <div class="markdown">{tokens === null ? <p>{text}</p> : tokens.map(block)}</div>
}

function block(token: Token, key: number): ComponentChildren {
  switch (token.type) {
    case 'heading':
    case 'paragraph':
      return (
        <p key={key} class={token.type === 'heading' ? 'markdown-heading' : undefined}>
          {inline(token.tokens)}
        </p>
      )
    case 'code':
      return (
        <Scrollable as="pre" key={key} label="Code">
          {token.text}
        </Scrollable>
      )
    case 'blockquote':
      return <blockquote key={key}>{token.tokens?.map(block)}</blockquote>
    case 'list':
      return list(token as Tokens.List, key)
    case 'table':
      return table(token as Tokens.Table, key)
    case 'hr':
      return <hr key={key} />
    case 'space':
    case 'def':
      return null
    case 'text':
      return <span key={key}>{inline('tokens' in token && token.tokens ? token.tokens : [token])}</span>
    default:
      return <p key={key}>{token.raw}</p>
  }
}

function list({ ordered, start, items }: Tokens.List, key: number): ComponentChildren {
  const parts = items.map((item, index) => (
    <li key={index}>
      {item.task && (item.checked ? '☑ ' : '☐ ')}
      {item.tokens.map(block)}
    </li>
  ))
  return ordered ? (
    <ol key={key} start={Number(start) || 1}>
      {parts}
    </ol>
  ) : (
    <ul key={key}>{parts}</ul>
  )
}

function table({ header, rows }: Tokens.Table, key: number): ComponentChildren {
  return (
    <div key={key} class="markdown-table">
      <table>
        <thead>
          <tr>
            {header.map((cell, index) => (
              <th key={index} scope="col">
                {inline(cell.tokens)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {row.map((cell, column) => (
                <td key={column}>{inline(cell.tokens)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function inline(tokens: readonly Token[] = []): ComponentChildren {
  return tokens.map((token, key) => {
    switch (token.type) {
      case 'strong':
        return <strong key={key}>{inline(token.tokens)}</strong>
      case 'em':
        return <em key={key}>{inline(token.tokens)}</em>
      case 'del':
        return <del key={key}>{inline(token.tokens)}</del>
      case 'codespan':
        return <code key={key}>{token.text}</code>
      case 'br':
        return <br key={key} />
      case 'link':
      case 'image':
        return link(token as Tokens.Link, key)
      case 'text':
        // The lexer leaves entities in texts as they were written.
        return 'tokens' in token && token.tokens ? inline(token.tokens) : token.raw
      case 'escape':
        return token.text
      default:
        return token.raw
    }
  })
}

function link({ href, raw, tokens, text }: Tokens.Link, key: number): ComponentChildren {
  if (!SAFE_LINK.test(href)) return raw
  return (
    <a key={key} href={href} target="_blank" rel="noopener noreferrer" title={href}>
      {tokens === undefined || tokens.length === 0 ? text : inline(tokens)}
    </a>
  )
}

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
