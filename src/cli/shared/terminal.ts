import { visible } from '../../base/visible.ts'

/** Text for a terminal. Widths are terminal columns: a character takes zero, one or two. */

const STYLES = {
  plain: '',
  dim: '2',
  bold: '1',
  grey: '90',
  red: '31',
  redBold: '1;31',
  green: '32',
  yellow: '33',
  yellowBold: '1;33',
  cyan: '36',
} as const
export type Style = keyof typeof STYLES
export type Paint = (style: Style, text: string) => string

/** Shows a message that is not part of the result. */
export type Note = (text: string, style: Style) => void

export function createPaint(color: boolean): Paint {
  return (style, text) =>
    color && style !== 'plain' && text.trim() !== '' ? `\x1b[${STYLES[style]}m${text}\x1b[0m` : text
}

/**
 * Untrusted text must not control the terminal: line breaks and tabs become spaces; other control characters, and those that
 * change the direction of text, are shown as escapes.
 */
export function printable(text: string): string {
  return visible(text.replace(/[\t\n\r\u2028\u2029]+/g, ' '))
}

/** Cuts text that is wider than `width` and appends the ellipsis. */
export function cut(text: string, width: number, ellipsis = '…'): string {
  if (width === Number.POSITIVE_INFINITY) return text
  // Some characters have no width, but long runs of them do not occur.
  const start = text.slice(0, width * 10)
  if (start.length === text.length && Bun.stringWidth(text) <= width) return text
  // The result is one column too wide if the last character takes two. The spaces make `start` wide enough to be cut.
  for (let columns = width; columns > 0; columns--) {
    const shown = Bun.sliceAnsi(`${start}${' '.repeat(width + 1)}`, 0, columns, ellipsis)
    if (Bun.stringWidth(shown) <= width) return shown
  }
  return ''
}

export function pad(text: string, width: number, align: 'left' | 'right' = 'left'): string {
  const space = ' '.repeat(Math.max(0, width - Bun.stringWidth(text)))
  return align === 'right' ? space + text : text + space
}
