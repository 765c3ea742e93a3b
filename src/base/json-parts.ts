/**
 * Splits JSON without parsing its values, so that they stay exactly as sent (a 64-bit integer keeps its digits, `1.0` stays
 * `1.0`), and one of 20 MiB costs little. The text must be valid JSON.
 */

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c]
const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = [0x7b, 0x7d, 0x5b, 0x5d]

/** The elements of an array, each as its text. */
export function elements(array: string): string[] {
  const found: string[] = []
  let at = skipSpace(array, skipSpace(array, 0) + 1)
  while (at < array.length && array.charCodeAt(at) !== CLOSE_BRACKET) {
    const end = valueEnd(array, at)
    found.push(array.slice(at, end))
    at = nextPart(array, end)
  }
  return found
}

/** The names of an object's members and their values, each as its text, in order; none if it is no object. */
export function members(object: string): [name: string, value: string][] {
  const found: [name: string, value: string][] = []
  const open = skipSpace(object, 0)
  if (object.charCodeAt(open) !== OPEN_BRACE) return found
  let at = skipSpace(object, open + 1)
  while (object.charCodeAt(at) === QUOTE) {
    const nameEnd = stringEnd(object, at)
    const start = skipSpace(object, skipSpace(object, nameEnd) + 1)
    const end = valueEnd(object, start)
    found.push([JSON.parse(object.slice(at, nameEnd)), object.slice(start, end)])
    at = nextPart(object, end)
  }
  return found
}

/** The value of the member called `name`. */
export function member(object: string, name: string): string | undefined {
  return members(object).find(([each]) => each === name)?.[1]
}

/** Where the next element or member begins, after the end of one. */
function nextPart(text: string, end: number): number {
  const at = skipSpace(text, end)
  return text.charCodeAt(at) === COMMA ? skipSpace(text, at + 1) : at
}

function skipSpace(text: string, at: number): number {
  while (text.charCodeAt(at) <= 0x20) at++
  return at
}

function valueEnd(text: string, at: number): number {
  const first = text.charCodeAt(at)
  if (first === QUOTE) return stringEnd(text, at)
  if (first === OPEN_BRACE || first === OPEN_BRACKET) return containerEnd(text, at)
  const { length } = text
  for (; at < length; at++) {
    const code = text.charCodeAt(at)
    if (code === COMMA || code === CLOSE_BRACE || code === CLOSE_BRACKET || code <= 0x20) break
  }
  return at
}

function containerEnd(text: string, at: number): number {
  const { length } = text
  let depth = 0
  for (; at < length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = stringEnd(text, at) - 1
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) depth++
    else if ((code === CLOSE_BRACE || code === CLOSE_BRACKET) && --depth === 0) return at + 1
  }
  return at
}

/** The position after the closing quote. */
function stringEnd(text: string, at: number): number {
  const { length } = text
  for (at++; at < length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) return at + 1
    if (code === BACKSLASH) at++
  }
  return at
}
