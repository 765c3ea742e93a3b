/** Text for a terminal. Widths are columns of it: some characters take two, some none. */

const STYLES = { dim: '2', bold: '1', red: '31', yellow: '1;33' } as const
export type Style = keyof typeof STYLES
export type Paint = (style: Style, text: string) => string

export function createPaint(color: boolean): Paint {
  return (style, text) => (color && text !== '' ? `\x1b[${STYLES[style]}m${text}\x1b[0m` : text)
}

/**
 * Text of strangers must not steer the terminal: line breaks and tabs become spaces, other controls and marks that turn
 * the direction of writing become a sign.
 */
export function printable(text: string): string {
  return text.replace(/[\t\n\r\u2028\u2029]+/g, ' ').replace(STEERING, '\ufffd')
}

const STEERING = /[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/** Cuts what is wider; the cut can be seen. */
export function cut(text: string, width: number, ellipsis: string): string {
  // A character may take no column, but not many of them in a row do.
  const start = text.slice(0, width * 10)
  if (start.length === text.length && Bun.stringWidth(text) <= width) return text
  // One too wide when the last character takes two columns; and what is left of a long text may fit as it is.
  for (let columns = width; columns > 0; columns--) {
    const shown = Bun.sliceAnsi(`${start}${' '.repeat(width + 1)}`, 0, columns, ellipsis)
    if (Bun.stringWidth(shown) <= width) return shown
  }
  return ''
}

export function pad(text: string, width: number, isRight: boolean): string {
  const space = ' '.repeat(Math.max(0, width - Bun.stringWidth(text)))
  return isRight ? space + text : text + space
}
