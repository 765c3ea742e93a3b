import type { AnchorHTMLAttributes, ComponentChildren } from 'preact'
import { compact, dollars } from '../../../base/format.ts'

interface HeadProps {
  readonly title: ComponentChildren
  /** Of the head and of the cells. */
  readonly class?: string
  readonly isNumber?: boolean | undefined
  /** Without it, the rows cannot be sorted by this column. */
  readonly sort?: {
    /** Undefined: the rows are sorted by another column. */
    readonly direction: 'ascending' | 'descending' | undefined
    readonly choose: () => void
  }
}

export interface Column<Row> extends HeadProps {
  readonly cell: (row: Row) => ComponentChildren
}

/** The column of the buttons about a row; its `cell` shows them. */
export const ACTIONS = { title: <span class="unseen">Actions</span>, class: 'row-actions' }

interface Used {
  readonly usage: { readonly total_tokens: number }
  readonly cost_usd: number
}

/** The columns of what runs or sessions have used. */
export const USAGE = [
  {
    title: 'Tokens',
    isNumber: true,
    class: 'col-tokens',
    cell: ({ usage }: Used) => usage.total_tokens > 0 && compact(usage.total_tokens),
  },
  { title: 'Cost', isNumber: true, class: 'col-cost', cell: ({ cost_usd: cost }: Used) => cost > 0 && dollars(cost) },
] as const

interface TableProps<Row> {
  /** `false` stands for a column that is left out. */
  readonly columns: readonly (Column<Row> | false)[]
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row, index: number) => string | number
  /** The link at the beginning of a row, which a click anywhere in the row follows. */
  readonly link?: (row: Row) => AnchorHTMLAttributes
  readonly isSelected?: (row: Row) => boolean
  readonly attributes?: (row: Row) => Readonly<Record<string, string>>
  readonly class?: string
  /** The class of the box in which the table scrolls; by default, the table has none. */
  readonly box?: string
}

/** Rows of data in columns. */
export function Table<Row>({ columns, rows, keyOf, link, isSelected, attributes, class: name, box }: TableProps<Row>) {
  const shown = columns.filter((column) => column !== false)
  const rowOf = (row: Row, index: number) => {
    const current = isSelected?.(row) ? 'true' : undefined
    return (
      <tr key={keyOf(row, index)} aria-current={current} {...attributes?.(row)}>
        {shown.map((column, at) => (
          <td key={at} class={classOf(column)}>
            {at === 0 && link && <a class="row-link" aria-current={current} {...link(row)} />}
            {column.cell(row)}
          </td>
        ))}
      </tr>
    )
  }
  const table = (
    <table class={name}>
      <thead>
        <tr>
          {shown.map((column, at) => (
            <Head key={at} {...column} />
          ))}
        </tr>
      </thead>
      <tbody>{rows.map(rowOf)}</tbody>
    </table>
  )
  return box === undefined ? table : <div class={box}>{table}</div>
}

/** The head of a column, a button if the rows can be sorted by it. */
export function Head({ title, sort, ...column }: HeadProps) {
  return (
    <th scope="col" class={classOf(column)} aria-sort={sort?.direction}>
      {sort === undefined ? (
        title
      ) : (
        <button type="button" class="sort" onClick={sort.choose}>
          {title}
          <span aria-hidden="true">{sort.direction && (sort.direction === 'ascending' ? ' ↑' : ' ↓')}</span>
        </button>
      )}
    </th>
  )
}

function classOf({ class: name = '', isNumber }: Pick<HeadProps, 'class' | 'isNumber'>): string {
  return isNumber ? `number ${name}` : name
}
