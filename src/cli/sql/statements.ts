interface Statements {
  /** Statements that end with a semicolon, without it. Empty ones and those with only comments are left out. */
  readonly complete: readonly string[]
  /** The text after the last semicolon; empty if it is only white space and closed comments. */
  readonly rest: string
}

/** White space, and comments that end with their line. */
const BLANK = /\s+|(?:--|#[ !])[^\n]*/y
/** Strings and quoted names, to the end of the text if they are not closed. `'it''s'` reads as two, with the same result. */
const QUOTED = /(['"`])(?:\\.?|(?!\1)[^\\])*\1?/
const HEREDOC = /\$(?<mark>\w*)\$.*?(?:\$\k<mark>\$|$)/
const PLAIN = /[^\s'"`;\-#/$]+/
const TOKEN = new RegExp([BLANK, /\/\*/, QUOTED, HEREDOC, PLAIN, /./].map(({ source }) => source).join('|'), 'sy')
/** Comments can be nested. */
const IN_COMMENT = /\/\*|\*\/|[^*/]+|./sy

/** Splits text into statements like ClickHouse: semicolons in strings, names and comments do not end a statement. */
export function splitStatements(text: string): Statements {
  const complete: string[] = []
  let from = 0
  let isEmpty = true
  let depth = 0
  for (let at = 0; at < text.length; ) {
    const pattern = depth > 0 ? IN_COMMENT : TOKEN
    pattern.lastIndex = at
    const [token] = pattern.exec(text)!
    at += token.length
    if (token === '/*') depth++
    else if (depth > 0) depth -= token === '*/' ? 1 : 0
    else if (token === ';') {
      if (!isEmpty) complete.push(text.slice(from, at - 1).trim())
      from = at
      isEmpty = true
    } else isEmpty &&= /^(\s|--|#[ !])/.test(token)
  }
  return { complete, rest: isEmpty && depth === 0 ? '' : text.slice(from).trimStart() }
}
