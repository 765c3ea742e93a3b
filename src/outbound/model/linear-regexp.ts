/**
 * Regular expressions that match in time linear in the text, whatever the pattern. JavaScript's engine backtracks, so
 * `(a+)+$` on thirty letters blocks the process for minutes; this one simulates an NFA. Patterns come from tenants and tool
 * servers, texts from models.
 *
 * Not a port of RE2: patterns of JSON Schema are ECMA-262, of which RE2 lacks lookaheads and several escapes, and here all
 * patterns of one check share a budget of steps.
 */
interface LinearRegExp {
  /** Whether the pattern matches somewhere in the text. @throws TooCostly */
  test(text: string): boolean
}

/** Counted after `{n,m}` is expanded. */
const STATES_MAX = 5_000
/** A simulation begins with a table of its states, of which a step clears as many. */
const STATES_PER_STEP = 64
const NO_LIMIT = Number.POSITIVE_INFINITY

/** The pattern has a part that cannot be matched in linear time. The message names it. */
export class PatternUnsupported extends Error {}

/** Matching exceeds its step budget. */
export class TooCostly extends Error {}

/** What is left, in steps of about 20 ns, or in states; regular expressions that share a budget are bounded together. */
export interface StepBudget {
  left: number
}

/** @throws TooCostly */
export function spend(budget: StepBudget, steps: number): void {
  budget.left -= steps
  if (budget.left < 0) throw new TooCostly()
}

/**
 * @param pattern JavaScript syntax with the flag `u`, without back references and lookbehind
 * @param states how many the compiled pattern may have
 * @throws SyntaxError, PatternUnsupported
 */
export function linearRegExp(
  pattern: string,
  budget: StepBudget,
  states: StepBudget = { left: STATES_MAX },
): LinearRegExp {
  // Throws a helpful error for a malformed pattern; the parser below relies on a well-formed one.
  new RegExp(pattern, 'u')
  const program = compile(new Parser(pattern).parse(), states, { left: STATES_MAX })
  return { test: (text) => run(program, text, { from: 0, isAnchored: false }, budget) }
}

type Node =
  | { readonly kind: 'character'; readonly matches: (codePoint: number) => boolean }
  | { readonly kind: 'sequence' | 'choice'; readonly parts: readonly Node[] }
  | { readonly kind: 'repeat'; readonly part: Node; readonly min: number; readonly max: number }
  | { readonly kind: 'position'; readonly holds: (text: string, at: number) => boolean }
  | { readonly kind: 'ahead'; readonly part: Node; readonly isNegative: boolean }

class Parser {
  private at = 0

  constructor(private readonly pattern: string) {}

  parse(): Node {
    const parts = [this.sequence()]
    while (this.take('|')) parts.push(this.sequence())
    return parts.length === 1 ? parts[0]! : { kind: 'choice', parts }
  }

  private sequence(): Node {
    const parts: Node[] = []
    while (this.at < this.pattern.length && !'|)'.includes(this.pattern[this.at]!))
      parts.push(this.repeated(this.atom()))
    return { kind: 'sequence', parts }
  }

  private repeated(part: Node): Node {
    const [found, sign, least, comma, most] = this.takeMatch(/([*+?])|\{(\d+)(,?)(\d*)\}/y) ?? []
    if (found === undefined) return part
    // Greedy and lazy quantifiers match the same texts.
    this.take('?')
    if (sign !== undefined) return { kind: 'repeat', part, min: sign === '+' ? 1 : 0, max: sign === '?' ? 1 : NO_LIMIT }
    const min = Number(least)
    return { kind: 'repeat', part, min, max: comma === '' ? min : most === '' ? NO_LIMIT : Number(most) }
  }

  private atom(): Node {
    if (this.take('^')) return { kind: 'position', holds: (_text, at) => at === 0 }
    if (this.take('$')) return { kind: 'position', holds: (text, at) => at === text.length }
    if (this.take('\\b')) return { kind: 'position', holds: isWordEdge }
    if (this.take('\\B')) return { kind: 'position', holds: (text, at) => !isWordEdge(text, at) }
    if (this.take('(')) return this.group()
    if (this.takeMatch(/\\(?:[1-9]|k)/y) !== undefined) throw new PatternUnsupported('a back reference')
    const set = this.takeMatch(
      /\.|\[(?:\\.|[^\]\\])*\]|\\(?:u\{[^}]*\}|u[dD][89abAB]..\\u[dD][c-fC-F]..|u.{4}|x..|c.|[pP]\{[^}]*\}|.)/suy,
    )
    if (set !== undefined) return { kind: 'character', matches: memberOf(set[0]) }
    const codePoint = this.pattern.codePointAt(this.at)!
    this.at += codePoint > 0xffff ? 2 : 1
    return { kind: 'character', matches: (other) => other === codePoint }
  }

  private group(): Node {
    const [opening] = this.takeMatch(/\?(?:<[=!]|[=!:]|<[^>]*>)/y) ?? []
    if (opening === undefined && this.pattern[this.at] === '?') throw new PatternUnsupported('a group with flags')
    if (opening === '?<=' || opening === '?<!') throw new PatternUnsupported('a lookbehind')
    const part = this.parse()
    this.take(')')
    if (opening === '?=' || opening === '?!') return { kind: 'ahead', part, isNegative: opening === '?!' }
    return part
  }

  private take(text: string): boolean {
    const isThere = this.pattern.startsWith(text, this.at)
    if (isThere) this.at += text.length
    return isThere
  }

  private takeMatch(sticky: RegExp): RegExpExecArray | undefined {
    sticky.lastIndex = this.at
    const found = sticky.exec(this.pattern)
    if (found === null) return undefined
    this.at = sticky.lastIndex
    return found
  }
}

/**
 * Whether a character is in a set like `[a-z]`, `\d`, `\p{L}` or `.`; for a single character, JavaScript's engine is
 * safe. It is asked for characters that occur only: a schema may have thousands of sets.
 */
function memberOf(source: string): (codePoint: number) => boolean {
  let one: RegExp | undefined
  const ascii: (boolean | undefined)[] = []
  return (codePoint) => {
    const known = ascii[codePoint]
    if (known !== undefined) return known
    one ??= new RegExp(`^${source}$`, 'u')
    const isMember = one.test(String.fromCodePoint(codePoint))
    if (codePoint < 128) ascii[codePoint] = isMember
    return isMember
  }
}

function isWordEdge(text: string, at: number): boolean {
  return isWord(text.charCodeAt(at - 1)) !== isWord(text.charCodeAt(at))
}

function isWord(code: number): boolean {
  return (code >= 48 && code <= 57) || (code >= 65 && code <= 90) || code === 95 || (code >= 97 && code <= 122)
}

/** A state of the NFA and its transitions. */
type State = { readonly id: number } & (
  | { readonly kind: 'character'; readonly matches: (codePoint: number) => boolean; readonly next: State }
  | { readonly kind: 'position'; readonly holds: (text: string, at: number) => boolean; readonly next: State }
  | { readonly kind: 'ahead'; readonly program: Program; readonly isNegative: boolean; readonly next: State }
  | { readonly kind: 'fork'; readonly ways: State[] }
  | { readonly kind: 'end' }
)

interface Program {
  readonly start: State
  readonly size: number
}

/** @param left of the schema's states, and of this pattern's */
function compile(pattern: Node, ...left: readonly StepBudget[]): Program {
  let size = 0
  const id = () => size++
  const build = (node: Node, next: State): State => {
    for (const each of left) if (each.left-- <= 0) throw new PatternUnsupported('too many repetitions')
    switch (node.kind) {
      case 'character':
      case 'position':
        return { ...node, id: id(), next }
      case 'ahead':
        return { kind: 'ahead', id: id(), program: compile(node.part, ...left), isNegative: node.isNegative, next }
      case 'choice':
        return { kind: 'fork', id: id(), ways: node.parts.map((part) => build(part, next)) }
      case 'sequence':
        return node.parts.reduceRight((after, part) => build(part, after), next)
      case 'repeat':
        return buildRepeat(node, next)
    }
  }
  const buildRepeat = ({ part, min, max }: Node & { kind: 'repeat' }, next: State): State => {
    let start = next
    if (max === NO_LIMIT) {
      const loop = { kind: 'fork', id: id(), ways: [next] } as const satisfies State
      const ways: State[] = loop.ways
      ways.push(build(part, loop))
      start = loop
    } else for (let i = min; i < max; i++) start = { kind: 'fork', id: id(), ways: [next, build(part, start)] }
    for (let i = 0; i < min; i++) start = build(part, start)
    return start
  }
  const end: State = { kind: 'end', id: id() }
  return { start: build(pattern, end), size }
}

/** Simulates the NFA: tracks all states that a match can be in, one character at a time. */
function run(
  program: Program,
  text: string,
  { from, isAnchored }: { from: number; isAnchored: boolean },
  budget: StepBudget,
): boolean {
  spend(budget, program.size / STATES_PER_STEP)
  const seenAt = new Int32Array(program.size).fill(-1)
  let current: State[] = []
  let next: State[] = []
  for (let at = from; ; ) {
    if (at === from || !isAnchored) current.push(program.start)
    const codePoint = text.codePointAt(at)
    // Follows transitions that consume no character; `current` grows during the iteration.
    for (let i = 0; i < current.length; i++) {
      const state = current[i]!
      if (seenAt[state.id] === at) continue
      seenAt[state.id] = at
      spend(budget, 1)
      if (state.kind === 'end') return true
      if (state.kind === 'character') {
        if (codePoint !== undefined && state.matches(codePoint)) next.push(state.next)
      } else if (state.kind === 'fork') for (const way of state.ways) current.push(way)
      else if (state.kind === 'position') {
        if (state.holds(text, at)) current.push(state.next)
      } else if (run(state.program, text, { from: at, isAnchored: true }, budget) !== state.isNegative)
        current.push(state.next)
    }
    if (codePoint === undefined || (isAnchored && next.length === 0)) return false
    // Both lists are used again: allocating them for each character takes longer than matching it.
    const matched = next
    next = current
    next.length = 0
    current = matched
    at += codePoint > 0xffff ? 2 : 1
  }
}
