import { useMemo, useState } from 'preact/hooks'
import { pretty, textOf } from '../data/json.ts'
import type { Result } from '../data/query.ts'
import { TextBlock } from '../parts/code.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { VirtualList } from '../parts/virtual-list.tsx'
import { isNumeric } from './sql-state.ts'

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

/** Rows of a result; only those in view exist. Long cells are cut, and open in full. */
export function ResultTable({ result }: { readonly result: Result }) {
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
        <div role="row" class="result-row result-heads" style={grid}>
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
          height={Math.min(rows.length, LIST_HEIGHT_ROWS_MAX) * ROW_HEIGHT}
          isTable
          row={(index) => (
            <div key={index} role="row" aria-rowindex={index + 2} class="result-row" style={grid}>
              {columns.map((column) => (
                <ResultCell
                  key={column.name}
                  value={rows[index]?.[column.name]}
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
  readonly isNumber: boolean
  readonly open: (value: unknown) => void
}

function ResultCell({ value, isNumber, open }: ResultCellProps) {
  if (value === null || value === undefined) {
    return (
      <span role="cell" class={`null ${isNumber ? 'number' : ''}`}>
        null
      </span>
    )
  }
  const text = textOf(value)
  const isLong = text.length > WIDTH_CH_MAX || text.includes('\n')
  return (
    <span role="cell" class={isNumber ? 'number' : ''}>
      {isLong ? (
        <button type="button" class="cell-open" onClick={() => open(value)}>
          {text.slice(0, CELL_LENGTH_MAX)}
        </button>
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
