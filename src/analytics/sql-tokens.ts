/** Splits the engine's normal form of a query into tokens. Joined, the tokens are the original text. */

export interface SqlToken {
  readonly text: string
  /** The parts of a name such as `e.payload.a`, without quotes. Empty for other tokens. */
  readonly name: readonly string[]
  /** The index of the opening bracket around the token; -1 for none. */
  readonly bracket: number
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

function partsOf(name: string): string[] {
  return [...name.matchAll(new RegExp(PART, 'g'))].map(([part]) => (part.startsWith('`') ? part.slice(1, -1) : part))
}

/**
 * The element of a SELECT list that contains a token, as a range of tokens with an exclusive end. Undefined for a token
 * outside SELECT lists.
 */
export function selectElement(
  tokens: readonly SqlToken[],
  index: number,
): readonly [from: number, to: number] | undefined {
  const around = new Set<number>([-1])
  for (let at = tokens[index].bracket; at >= 0; at = tokens[at].bracket) around.add(at)
  let from = index
  // Find the innermost SELECT within the brackets around the token.
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

/** The first token after SELECT, DISTINCT, and ON with its brackets. */
function listStart(tokens: readonly SqlToken[], select: number): number {
  let at = select + 2
  if (tokens[at]?.text === 'DISTINCT') at += 2
  if (tokens[at]?.text !== 'ON') return at
  const bracket = at + 2
  at = bracket + 1
  while (at < tokens.length && tokens[at].bracket !== tokens[bracket].bracket) at++
  return at + 1
}
