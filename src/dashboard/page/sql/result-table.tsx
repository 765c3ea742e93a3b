// biome-ignore-all lint/a11y/useSemanticElements: the body scrolls and holds only the rows in view, which no real table can.
// biome-ignore-all lint/a11y/useFocusableInteractive: rows and heads are interactive in a grid, not in a table.

import { useMemo, useState } from 'preact/hooks'
import type { Result } from '../data/api.ts'
import { pretty, textOf } from '../data/json.ts'
import { TextBlock } from '../parts/code.tsx'
import { Button, Dialog } from '../parts/controls.tsx'
import { VirtualList } from '../parts/virtual-list.tsx'
import { hrefOfCell } from './cell-links.ts'
import { isNumeric } from './columns.ts'

const ROW_HEIGHT = 28
const CELL_LENGTH_MAX = 300
/** Rows from which the widths of the columns are estimated. */
const SAMPLE_ROWS = 60
const WIDTH_CH_MIN = 6
const WIDTH_CH_MAX = 44
const CELL_PADDING_CH = 3
const LIST_HEIGHT_ROWS_MAX = 18

interface Cell {
  readonly title: string
  readonly value: unknown
}

interface ResultTableProps {
  readonly result: Result
  /** Rows in view; the others scroll. */
  readonly rowsMax?: number
}

/** Rows of a result; only those in view exist. Long cells are cut, and open in full. */
export function ResultTable({ result, rowsMax = LIST_HEIGHT_ROWS_MAX }: ResultTableProps) {
  const { columns, rows } = result
  const [open, setOpen] = useState<Cell | null>(null)
  const grid = useMemo(() => gridOf(result), [result])
  return (
    <div
      class="result-table"
      role="table"
      aria-label="Rows"
      aria-rowcount={rows.length + 1}
      aria-colcount={columns.length}
    >
      <div class="result-scroll">
        <div role="row" class="result-row result-heads mono" style={grid}>
          {columns.map((column) => (
            <span key={column.name} role="columnheader" title={column.type} class={isNumeric(column) ? 'number' : ''}>
              {column.name}
            </span>
          ))}
        </div>
        <VirtualList
          class="result-rows"
          count={rows.length}
          rowHeight={ROW_HEIGHT}
          label="Rows of the result"
          height={Math.min(rows.length, rowsMax) * ROW_HEIGHT}
          isTable
          row={(index) => (
            <div key={index} role="row" aria-rowindex={index + 2} class="result-row mono" style={grid}>
              {columns.map((column) => (
                <ResultCell
                  key={column.name}
                  value={rows[index]?.[column.name]}
                  href={hrefOfCell(column.name, rows[index] ?? {})}
                  isNumber={isNumeric(column)}
                  open={(value) => setOpen({ title: column.name, value })}
                />
              ))}
            </div>
          )}
        />
      </div>
      {open !== null && (
        <Dialog title={open.title} close={() => setOpen(null)}>
          <TextBlock
            title="Value"
            text={typeof open.value === 'string' ? open.value : pretty(open.value)}
            isJson={typeof open.value !== 'string'}
          />
        </Dialog>
      )}
    </div>
  )
}

interface ResultCellProps {
  readonly value: unknown
  /** The address of what the value identifies. */
  readonly href: string | null
  readonly isNumber: boolean
  readonly open: (value: unknown) => void
}

function ResultCell({ value, href, isNumber, open }: ResultCellProps) {
  const text = textOf(value ?? 'null')
  const isLong = text.length > WIDTH_CH_MAX || text.includes('\n')
  return (
    <span role="cell" class={`${value === null || value === undefined ? 'null' : ''} ${isNumber ? 'number' : ''}`}>
      {href !== null ? (
        <a href={href}>{text}</a>
      ) : isLong ? (
        <Button class="cell-open" onClick={() => open(value)} text={text.slice(0, CELL_LENGTH_MAX)} />
      ) : (
        text
      )}
    </span>
  )
}

/** Columns as wide as the longest of their first cells, within limits; what is left is shared. */
function gridOf({ columns, rows }: Result) {
  const widths = columns.map(({ name }) => {
    const lengths = rows.slice(0, SAMPLE_ROWS).map((row) => textOf(row[name] ?? 'null').length)
    return Math.min(WIDTH_CH_MAX, Math.max(WIDTH_CH_MIN, name.length, ...lengths)) + CELL_PADDING_CH
  })
  const total = widths.reduce((sum, width) => sum + width, 0)
  return {
    gridTemplateColumns: widths.map((width) => `minmax(${width}ch, ${width}fr)`).join(' '),
    minWidth: `${total}ch`,
  }
}
