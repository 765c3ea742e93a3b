import { shortened } from '../../base/code-points.ts'

/**
 * Finds JSON that cannot be passed to a tool exactly. Arguments are parsed and serialized again on their way to a tool,
 * which rounds numbers (`9007199254740993`, `1e400`), keeps only one of two members with the same name, and cannot represent
 * lone surrogates. A person approves exactly what runs, so such arguments are refused.
 */

interface Inexact {
  /** For example `items[2].price`, after the root. */
  readonly path: string
  readonly problem: string
}

/** An object or array that is still open. */
interface OpenValue {
  /** Undefined for an array. */
  readonly names: Set<string> | undefined
  name: string
  index: number
}

/** The next character that starts a string or number, or is structural. */
const NEXT = /["{}[\],\d-]/g
const NUMBER = /-?\d[\d.eE+-]*/y
const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/
const SHOWN_MAX = 60

/**
 * The first part of a JSON text that would change on its way to a tool; undefined if there is none.
 * @param text valid JSON
 * @param root the start of each path
 */
export function inexactIn(text: string, root = ''): Inexact | undefined {
  const open: OpenValue[] = []
  const found = (problem: string): Inexact => ({ path: pathOf(open, root), problem })
  let isName = false
  for (let at = nextAt(text, 0); at < text.length; at = nextAt(text, at)) {
    const char = text[at]
    if (char === '"') {
      const end = endOfString(text, at)
      const value = stringOf(text.slice(at, end))
      at = end
      const inner = open.at(-1)
      if (isName && inner?.names !== undefined) {
        inner.name = value
        isName = false
        if (inner.names.has(value)) return found('duplicate member')
        inner.names.add(value)
      }
      if (!value.isWellFormed()) return found('text with a lone surrogate, which is half of a character')
      continue
    }
    if (char === '{' || char === '[') {
      open.push({ names: char === '{' ? new Set() : undefined, name: '', index: 0 })
      isName = char === '{'
    } else if (char === '}' || char === ']') {
      open.pop()
    } else if (char === ',') {
      const inner = open.at(-1)!
      inner.index++
      isName = inner.names !== undefined
    } else {
      NUMBER.lastIndex = at
      const number = NUMBER.exec(text)![0]
      at += number.length
      const problem = numberProblem(number)
      if (problem !== undefined) return found(problem)
      continue
    }
    at++
  }
  return undefined
}

function nextAt(text: string, from: number): number {
  NEXT.lastIndex = from
  return NEXT.exec(text)?.index ?? text.length
}

/** @param at the opening quote */
function endOfString(text: string, at: number): number {
  for (let end = at; ; ) {
    end = text.indexOf('"', end + 1)
    let backslashes = 0
    while (text[end - 1 - backslashes] === '\\') backslashes++
    if (backslashes % 2 === 0) return end + 1
  }
}

function stringOf(quoted: string): string {
  return quoted.includes('\\') ? JSON.parse(quoted) : quoted.slice(1, -1)
}

function numberProblem(number: string): string | undefined {
  const arrives = JSON.stringify(Number(number))
  if (arrives === number || (arrives !== 'null' && decimalOf(arrives) === decimalOf(number))) return undefined
  return `the number ${shortened(number, SHOWN_MAX)} cannot be passed to a tool exactly, it would become ${arrives}: send it as a string`
}

/**
 * The value of a number as its sign, its digits and the position of the last one: equal for all spellings of the value.
 */
function decimalOf(number: string): string {
  const [, sign, whole = '', fraction = '', exponent = '0'] = DECIMAL.exec(number)!
  const digits = whole + fraction
  // Not with a regular expression: trimming the end with one takes quadratic time.
  let start = 0
  let end = digits.length
  while (digits[start] === '0') start++
  while (end > start && digits[end - 1] === '0') end--
  if (start === end) return `${sign}0`
  return `${sign}${digits.slice(start, end)}e${Number(exponent) - fraction.length + digits.length - end}`
}

/** Well-formed, and short unless the text is nested deeply. */
function pathOf(open: readonly OpenValue[], root: string): string {
  const path = open
    .map(({ names, name, index }) => (names === undefined ? `[${index}]` : `.${shortened(name, SHOWN_MAX)}`))
    .join('')
  return (root === '' ? path.replace(/^\./, '') : root + path).toWellFormed()
}
