/**
 * Splits JSON without parsing its values, so that they can be shown exactly as sent: a 64-bit integer keeps its digits,
 * `1.0` stays `1.0`. The text must be valid JSON.
 */

/** The elements of an array, each as its text. */
export function elements(array: string): string[] {
  return parts(array).map(([from, to]) => array.slice(from, to).trim())
}

/** The names and values of an object's members, in order, each value as its text. */
export function members(object: string): [name: string, value: string][] {
  return parts(object).map(([from, to]) => {
    const quote = object.indexOf('"', from)
    const nameEnd = stringEnd(object, quote) + 1
    const name = JSON.parse(object.slice(quote, nameEnd)) as string
    return [name, object.slice(object.indexOf(':', nameEnd) + 1, to).trim()]
  })
}

/** The value of the member called `name`. */
export function member(object: string, name: string): string | undefined {
  return members(object).find(([each]) => each === name)?.[1]
}

/** The bounds of the elements between the outermost brackets. */
function parts(container: string): [from: number, to: number][] {
  const found: [number, number][] = []
  let depth = 0
  let from = 0
  let isEmpty = true
  for (let at = 0; at < container.length; at++) {
    const char = container.charCodeAt(at)
    if (char <= SPACE) continue
    if (char === OPEN_BRACKET || char === OPEN_BRACE) {
      if (++depth === 1) from = at + 1
      else isEmpty = false
    } else if (char === CLOSE_BRACKET || char === CLOSE_BRACE) {
      if (--depth === 0 && !isEmpty) found.push([from, at])
    } else {
      isEmpty = false
      if (char === QUOTE) at = stringEnd(container, at)
      else if (char === COMMA && depth === 1) {
        found.push([from, at])
        from = at + 1
      }
    }
  }
  return found
}

/** The index of the closing quote of the string that opens at `at`. */
function stringEnd(text: string, at: number): number {
  for (let end = text.indexOf('"', at + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes++
    if (backslashes % 2 === 0) return end
  }
  return text.length
}

const SPACE = 0x20
const QUOTE = 0x22
const COMMA = 0x2c
const OPEN_BRACKET = 0x5b
const BACKSLASH = 0x5c
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
