/** The length of a text in characters, as RFC 8259 and JSON Schema count them: an emoji is one. */
export function codePoints(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}
