export interface SqlToken {
  readonly text: string
  /** The parts of a name such as `e.payload.a`, without quotes. Empty for other tokens. */
  readonly name: readonly string[]
  /** The innermost element of a SELECT list that contains the token. */
  readonly element: ListElement | undefined
}

/** A range of tokens with an exclusive end. */
interface ListElement {
  from: number
  to: number
}

/** The normal form has no names in double quotes. */
const PART = '(?:`(?:[^`\\\\]|\\\\.)*`|[A-Za-z_]\\w*)'
const TOKEN = new RegExp(
  `'(?:[^'\\\\]|\\\\.)*'|\\{\\w+:(?:[^{}'\`]|'[^']*'|\`[^\`]*\`)*\\}|\\d[\\w.]*|(${PART}(?:\\.${PART})*)|\\s+|[\\s\\S]`,
  'g',
)

const LIST_ENDS = new Set(
  'FROM PREWHERE WHERE GROUP HAVING WINDOW QUALIFY ORDER LIMIT OFFSET FETCH SETTINGS FORMAT UNION INTERSECT EXCEPT'.split(
    ' ',
  ),
)

/** Splits the engine's normal form of a query into tokens. Joined, the tokens are the original text. */
export function sqlTokens(text: string): SqlToken[] {
  const tokens: SqlToken[] = []
  // For each open bracket, the element that its tokens are in, and whether the list is within the bracket.
  const scopes: { element: ListElement | undefined; isOwn: boolean }[] = [{ element: undefined, isOwn: false }]
  let scope = scopes[0]
  const begin = (from: number) => {
    scope.element = { from, to: from }
    scope.isOwn = true
  }
  const end = () => {
    const { element, isOwn } = scope
    if (element === undefined || !isOwn) return
    element.to = tokens.length
    while (element.to > element.from && /^\s+$/.test(tokens[element.to - 1].text)) element.to--
    scope.element = undefined
    scope.isOwn = false
  }
  for (const [token, name] of text.matchAll(TOKEN)) {
    const at = tokens.length
    if (/^[)\]]$/.test(token) && scopes.length > 1) {
      end()
      scopes.pop()
      scope = scopes[scopes.length - 1]
    }
    if (token === 'SELECT') begin(at + 2)
    else if (scope.isOwn && token === 'DISTINCT' && scope.element?.from === at) begin(at + 2)
    else if (scope.isOwn && token === ',') {
      end()
      begin(at + 1)
    } else if (scope.isOwn && LIST_ENDS.has(token)) end()
    tokens.push({ text: token, name: name === undefined ? [] : partsOf(name), element: scope.element })
    if (/^[([]$/.test(token)) {
      scope = { element: scope.element, isOwn: false }
      scopes.push(scope)
    }
  }
  end()
  return tokens
}

function partsOf(name: string): string[] {
  return [...name.matchAll(new RegExp(PART, 'g'))].map(([part]) => (part.startsWith('`') ? part.slice(1, -1) : part))
}
