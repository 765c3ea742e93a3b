/** Splits text into statements like ClickHouse: semicolons in strings, names and comments do not end a statement. */

interface Statements {
  /** Statements that end with a semicolon, without it. Empty ones and those with only comments are left out. */
  readonly complete: readonly string[]
  /** The text after the last semicolon; empty if it is only white space and closed comments. */
  readonly rest: string
}

export function splitStatements(text: string): Statements {
  const complete: string[] = []
  let from = 0
  let isEmpty = true
  for (const { kind, start, end, isClosed } of tokens(text)) {
    if (kind === 'semicolon') {
      if (!isEmpty) complete.push(text.slice(from, start).trim())
      from = end
      isEmpty = true
    } else if ((kind !== 'comment' && kind !== 'space') || !isClosed) isEmpty = false
  }
  return { complete, rest: isEmpty ? '' : text.slice(from).trimStart() }
}

/**
 * Removes line breaks, and the comments that need them, because the history has one entry per line.
 * @returns null for the rare statement that cannot be written on one line
 */
export function onOneLine(statement: string): string | null {
  let line = ''
  for (const { kind, start, end } of tokens(statement)) {
    const token = statement.slice(start, end)
    if (kind === 'space') line += line.endsWith(' ') ? '' : ' '
    else if (kind === 'comment') line += token.startsWith('/*') ? token.replace(/\s*[\r\n]\s*/g, ' ') : ''
    else if (token.startsWith("'")) line += token.replace(/(?<!\\)\n/g, '\\n')
    else line += token
  }
  return /[\r\n]/.test(line) ? null : line.trim()
}

interface Token {
  readonly kind: 'space' | 'comment' | 'quoted' | 'semicolon' | 'other'
  readonly start: number
  readonly end: number
  /** False for a quotation or comment that does not end. */
  readonly isClosed: boolean
}

function* tokens(text: string): Generator<Token> {
  for (let start = 0; start < text.length; ) {
    const token = tokenAt(text, start)
    yield token
    start = token.end
  }
}

const SPACE = /\s+/y
const LINE_COMMENT = /(?:--|#[ !])[^\n]*/y
const HEREDOC = /\$\w*\$/y
const OTHER = /[^\s'"`;\-#/$]+/y

function tokenAt(text: string, start: number): Token {
  const until = (kind: Token['kind'], end: number, isClosed = true): Token => ({ kind, start, end, isClosed })
  const matched = (pattern: RegExp) => {
    pattern.lastIndex = start
    return pattern.exec(text)?.[0]
  }
  const space = matched(SPACE)
  if (space !== undefined) return until('space', start + space.length)
  const comment = matched(LINE_COMMENT)
  if (comment !== undefined) return until('comment', start + comment.length)
  if (text.startsWith('/*', start)) {
    const end = commentEnd(text, start)
    return until('comment', end ?? text.length, end !== null)
  }
  const char = text[start]!
  if (char === ';') return until('semicolon', start + 1)
  if (char === "'" || char === '"' || char === '`') {
    const end = quotationEnd(text, start)
    return until('quoted', end ?? text.length, end !== null)
  }
  const mark = matched(HEREDOC)
  if (mark !== undefined) {
    const end = text.indexOf(mark, start + mark.length)
    return until('quoted', end === -1 ? text.length : end + mark.length, end !== -1)
  }
  return until('other', start + (matched(OTHER)?.length ?? 1))
}

/** ClickHouse comments can be nested. */
function commentEnd(text: string, start: number): number | null {
  const bracket = /\/\*|\*\//g
  bracket.lastIndex = start
  let depth = 0
  for (let match = bracket.exec(text); match !== null; match = bracket.exec(text)) {
    depth += match[0] === '/*' ? 1 : -1
    if (depth === 0) return bracket.lastIndex
  }
  return null
}

/** A doubled quote is treated as the end of one quotation and the start of the next, with the same result. */
function quotationEnd(text: string, start: number): number | null {
  const quote = text[start]
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === quote) return at + 1
  }
  return null
}
