/** Length in Unicode code points, as RFC 8259 and JSON Schema count characters. */
export function codePoints(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}
