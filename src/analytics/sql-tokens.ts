/** Reads the engine's normal form of a query as a list of tokens; joined, they are the text again. */

export interface SqlToken {
  readonly text: string
  /** The parts of a name, without quotes: `e.payload.a`. Empty for anything else. */
  readonly name: readonly string[]
  /** The token of the bracket that it stands in, by its index; -1 for none. */
  readonly bracket: number
}

export function sqlTokens(text: string): SqlToken[] {
  const tokens: SqlToken[] = []
  const brackets: number[] = []
  for (const [token, name] of text.matchAll(TOKEN)) {
    if (/^[)\]]$/.test(token)) brackets.pop()
    tokens.push({ text: token, name: name === undefined ? [] : partsOf(name), bracket: brackets.at(-1) ?? -1 })
    if (/^[([]$/.test(token)) brackets.push(tokens.length - 1)
  }
  return tokens
}

/** A quoted name that begins with a double quote is none of the normal form. */
const PART = '(?:`(?:[^`\\\\]|\\\\.)*`|[A-Za-z_]\\w*)'
const TOKEN = new RegExp(
  `'(?:[^'\\\\]|\\\\.)*'|\\{\\w+:(?:[^{}'\`]|'[^']*'|\`[^\`]*\`)*\\}|\\d[\\w.]*|(${PART}(?:\\.${PART})*)|\\s+|[\\s\\S]`,
  'g',
)

function partsOf(name: string): string[] {
  return [...name.matchAll(new RegExp(PART, 'g'))].map(([part]) => (part.startsWith('`') ? part.slice(1, -1) : part))
}

/**
 * The element of the list of a SELECT that a token is part of: from the first of its tokens up to what follows the last.
 * Undefined for a token elsewhere.
 */
export function selectElement(
  tokens: readonly SqlToken[],
  index: number,
): readonly [from: number, to: number] | undefined {
  const around = new Set<number>([-1])
  for (let at = tokens[index].bracket; at >= 0; at = tokens[at].bracket) around.add(at)
  let from = index
  // The innermost SELECT that stands in one of the brackets around the token.
  while (from >= 0 && !(tokens[from].text === 'SELECT' && around.has(tokens[from].bracket))) from--
  if (from < 0) return undefined
  const { bracket } = tokens[from]
  let start = listStart(tokens, from)
  for (let at = start; at < tokens.length; at++) {
    const token = tokens[at]
    const isWithin = token.bracket === bracket
    const isClosed = bracket >= 0 && token.bracket === tokens[bracket].bracket && /^[)\]]$/.test(token.text)
    if (isWithin && token.text === ',') {
      if (at > index) return trimmed(tokens, start, at)
      start = at + 1
    } else if (isClosed || (isWithin && LIST_ENDS.has(token.text))) {
      return at > index ? trimmed(tokens, start, at) : undefined
    }
  }
  return trimmed(tokens, start, tokens.length)
}

function trimmed(tokens: readonly SqlToken[], start: number, end: number): readonly [number, number] {
  let to = end
  while (to > start && /^\s+$/.test(tokens[to - 1].text)) to--
  return [start, to]
}

const LIST_ENDS = new Set(
  'FROM PREWHERE WHERE GROUP HAVING WINDOW QUALIFY ORDER LIMIT OFFSET FETCH SETTINGS FORMAT UNION INTERSECT EXCEPT'.split(
    ' ',
  ),
)

/** After SELECT, DISTINCT, and ON with its brackets. */
function listStart(tokens: readonly SqlToken[], select: number): number {
  let at = select + 2
  if (tokens[at]?.text === 'DISTINCT') at += 2
  if (tokens[at]?.text !== 'ON') return at
  const bracket = at + 2
  at = bracket + 1
  while (at < tokens.length && tokens[at].bracket !== tokens[bracket].bracket) at++
  return at + 1
}
