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

/** The SELECT lists of a query. Each is read once, because a query may have thousands of elements. */
export class SelectLists {
  /** The SELECTs within each bracket, in order. */
  private readonly selects = new Map<number, number[]>()
  /** The elements of the list after a SELECT, in order. */
  private readonly elements = new Map<number, (readonly [from: number, to: number])[]>()

  constructor(private readonly tokens: readonly SqlToken[]) {
    tokens.forEach(({ text, bracket }, index) => {
      if (text !== 'SELECT') return
      const within = this.selects.get(bracket)
      if (within === undefined) this.selects.set(bracket, [index])
      else within.push(index)
    })
  }

  /**
   * The element of a SELECT list that contains a token, as a range of tokens with an exclusive end. Undefined for a token
   * outside SELECT lists.
   */
  elementAt(index: number): readonly [from: number, to: number] | undefined {
    // The innermost SELECT within the brackets around the token.
    let select = -1
    for (let bracket = this.tokens[index].bracket; ; bracket = this.tokens[bracket].bracket) {
      const within = this.selects.get(bracket) ?? []
      select = Math.max(select, within[firstAfter(within, index, (at) => at) - 1] ?? -1)
      if (bracket < 0) break
    }
    if (select < 0) return undefined
    const elements = this.elements.get(select) ?? elementsAfter(this.tokens, select)
    this.elements.set(select, elements)
    const element = elements[firstAfter(elements, index, ([, end]) => end)]
    return element && trimmed(this.tokens, ...element)
  }
}

/** The index of the first item whose position is greater. */
function firstAfter<T>(items: readonly T[], position: number, positionOf: (item: T) => number): number {
  let [low, high] = [0, items.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (positionOf(items[middle]) > position) high = middle
    else low = middle + 1
  }
  return low
}

function elementsAfter(tokens: readonly SqlToken[], select: number): (readonly [from: number, to: number])[] {
  const { bracket } = tokens[select]
  const elements: (readonly [number, number])[] = []
  let start = listStart(tokens, select)
  for (let at = start; at < tokens.length; at++) {
    const token = tokens[at]
    const isWithin = token.bracket === bracket
    const isClosed = bracket >= 0 && token.bracket === tokens[bracket].bracket && /^[)\]]$/.test(token.text)
    if (isWithin && token.text === ',') {
      elements.push([start, at])
      start = at + 1
    } else if (isClosed || (isWithin && LIST_ENDS.has(token.text))) {
      elements.push([start, at])
      return elements
    }
  }
  elements.push([start, tokens.length])
  return elements
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
