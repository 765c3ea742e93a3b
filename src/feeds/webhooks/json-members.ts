const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c]
const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = [0x7b, 0x7d, 0x5b, 0x5d]

/**
 * The members of an object and the texts of their values, unchanged. Finds the ends of values without parsing them, because an
 * activity may have 20 MiB.
 * @param object valid JSON; empty if it is no object
 */
export function membersOf(object: string): Map<string, string> {
  const members = new Map<string, string>()
  let at = skipSpace(object, 1)
  while (object.charCodeAt(at) === QUOTE) {
    const nameEnd = stringEnd(object, at)
    const start = skipSpace(object, skipSpace(object, nameEnd) + 1)
    const end = valueEnd(object, start)
    members.set(JSON.parse(object.slice(at, nameEnd)), object.slice(start, end))
    at = skipSpace(object, end)
    if (object.charCodeAt(at) === COMMA) at = skipSpace(object, at + 1)
  }
  return members
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
    if (code === COMMA || code === CLOSE_BRACE || code <= 0x20) break
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
