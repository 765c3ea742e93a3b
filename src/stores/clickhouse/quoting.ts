const QUOTED = /('(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`|"(?:[^"\\]|\\.)*")/s

/**
 * Replaces matches in SQL that are outside string literals and quoted names.
 * @param text SQL in the engine's normal form, which has no comments
 */
export function replaceUnquoted(
  text: string,
  pattern: RegExp,
  replacement: string | ((...match: string[]) => string),
): string {
  return text
    .split(QUOTED)
    .map((piece, i) => (i % 2 === 1 ? piece : piece.replace(pattern, replacement as string)))
    .join('')
}

/** A SQL string literal. */
export function quote(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\0', '\\0')}'`
}

export function quoteIdentifier(name: string): string {
  return `\`${name.replaceAll('\\', '\\\\').replaceAll('`', '\\`')}\``
}
