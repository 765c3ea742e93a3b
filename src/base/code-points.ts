/** Length in Unicode code points, as RFC 8259 and JSON Schema count characters. */
export function codePoints(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}

/** The text, cut off with `…` after this many UTF-16 units. */
export function shortened(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length).toWellFormed()}…`
}
