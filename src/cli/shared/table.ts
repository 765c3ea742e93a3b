import type { Environment } from './connection.ts'
import { createPaint, cut, type Paint, pad, printable } from './terminal.ts'

/** What a table shows. */
export interface Grid {
  readonly columns: readonly Column[]
  /** Display text; null for NULL. */
  readonly rows: readonly (readonly (string | null)[])[]
}

interface Column {
  readonly name: string
  /** The ClickHouse type. Numbers are right-aligned. */
  readonly type: string
}

interface TableLook {
  readonly paint: Paint
  /** Terminal width in columns; infinite if nothing needs to be cut. */
  readonly width: number
  /** Lines around the cells: box-drawing characters, ASCII, or none. */
  readonly frame: 'box' | 'ascii' | 'plain'
}

/** Of files and pipes: readable, also by `grep`. */
export const PLAIN_LOOK: TableLook = { paint: createPaint(false), width: Number.POSITIVE_INFINITY, frame: 'plain' }

/** Of the terminal that standard output is. */
export function terminalLook({ LC_ALL, LC_CTYPE, LANG }: Environment, noColor: boolean): TableLook {
  const frame = /utf-?8/i.test(LC_ALL || LC_CTYPE || LANG || '') ? 'box' : 'ascii'
  // A terminal of unknown width reports 0.
  return { paint: createPaint(!noColor), width: process.stdout.columns || Number.POSITIVE_INFINITY, frame }
}

/** Narrower columns would be unreadable. */
const COLUMN_WIDTH_MIN = 6
const NULL = 'NULL'

interface TableChrome {
  /** The text before, between and after the cells of a row. */
  readonly cells: Edges
  readonly top: Edges | null
  readonly middle: Edges
  readonly bottom: Edges | null
  readonly rule: string
  readonly ellipsis: string
}
type Edges = readonly [left: string, between: string, right: string]

const FRAMES: Readonly<Record<TableLook['frame'], TableChrome>> = {
  box: bordered('│', '─', '┌┬┐├┼┤└┴┘', '…'),
  ascii: bordered('|', '-', '+++++++++', '...'),
  plain: { cells: ['', '  ', ''], top: null, middle: ['', '  ', ''], bottom: null, rule: '-', ellipsis: '...' },
}

/** @param corners of the three rules, each from left to right */
function bordered(bar: string, rule: string, corners: string, ellipsis: string): TableChrome {
  const edges = (at: number): Edges => [
    `${corners[at]}${rule}`,
    `${rule}${corners[at + 1]}${rule}`,
    `${rule}${corners[at + 2]}`,
  ]
  return {
    cells: [`${bar} `, ` ${bar} `, ` ${bar}`],
    top: edges(0),
    middle: edges(3),
    bottom: edges(6),
    rule,
    ellipsis,
  }
}

/**
 * One line per row. Cells are cut to fit the terminal, the widest columns first.
 *
 * @returns null if there are too many columns for the width
 */
export function renderTable({ columns, rows }: Grid, { paint, width, frame }: TableLook): string | null {
  const { cells, top, middle, bottom, rule, ellipsis } = FRAMES[frame]
  const alignments = columns.map(alignmentOf)
  const heads = columns.map(({ name }) => printable(name))
  const lines = rows.map((row) => row.map((cell) => (cell === null ? NULL : printable(cell))))
  const natural = heads.map((head, i) =>
    lines.reduce((widest, line) => Math.max(widest, Bun.stringWidth(line[i]!)), Bun.stringWidth(head)),
  )
  const outside = cells[0].length + cells[1].length * (columns.length - 1) + cells[2].length
  const widths = fit(natural, width - outside)
  if (widths === null) return null
  const ruled = (edges: Edges) =>
    paint(
      'dim',
      joined(
        edges,
        widths.map((width) => rule.repeat(width)),
      ),
    )
  const [left, between, right] = cells.map((edge) => (edge.trim() === '' ? edge : paint('dim', edge)))
  const edges: Edges = [left!, between!, right!]
  const cell = (text: string, i: number) => pad(cut(text, widths[i]!, ellipsis), widths[i]!, alignments[i])
  const shown = [
    joined(
      edges,
      heads.map((head, i) => paint('bold', cell(head, i))),
    ),
    ruled(middle),
    ...lines.map((line, at) =>
      joined(
        edges,
        line.map((text, i) => (rows[at]![i] === null ? paint('dim', cell(text, i)) : cell(text, i))),
      ),
    ),
  ]
  if (top !== null) shown.unshift(ruled(top))
  if (bottom !== null) shown.push(ruled(bottom))
  return shown.map((line) => `${line.trimEnd()}\n`).join('')
}

/** One line per value, uncut. A value's own lines are kept. */
export function renderVertical({ columns, rows }: Grid, { paint, frame }: TableLook): string {
  const { rule } = FRAMES[frame]
  const names = columns.map(({ name }) => printable(name))
  const widest = Math.max(0, ...names.map((name) => Bun.stringWidth(name)))
  const indent = `\n${' '.repeat(widest + 2)}`
  return rows
    .map((row, at) => {
      const values = row.map((value, i) => {
        const name = paint('bold', pad(names[i]!, widest))
        const text = value === null ? paint('dim', NULL) : value.split(/\r?\n/).map(printable).join(indent)
        return `${name}  ${text}`.trimEnd()
      })
      return `${[paint('dim', `${rule}${rule} row ${at + 1} ${rule}${rule}`), ...values].join('\n')}\n`
    })
    .join('')
}

/** Distributes the available width: columns narrower than an equal share leave the rest to the others. Null if too narrow. */
function fit(natural: readonly number[], available: number): number[] | null {
  let left = available
  let cap = Number.POSITIVE_INFINITY
  const ascending = natural.toSorted((a, b) => a - b)
  for (const [i, want] of ascending.entries()) {
    const share = Math.floor(left / (ascending.length - i))
    if (want > share) {
      cap = share
      break
    }
    left -= want
  }
  return cap >= COLUMN_WIDTH_MIN ? natural.map((want) => Math.min(want, cap)) : null
}

function alignmentOf({ type }: Column): 'left' | 'right' {
  return /^(LowCardinality\()?(Nullable\()?(U?Int|Float|BFloat|Decimal)/.test(type) ? 'right' : 'left'
}

function joined([left, between, right]: Edges, cells: readonly string[]): string {
  return left + cells.join(between) + right
}
