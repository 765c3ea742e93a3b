import type { AnchorHTMLAttributes, ComponentChildren } from 'preact'
import { compact, dollars } from '../../../base/format.ts'
import { isTyping, useKeys } from '../context/browser.ts'

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

/** Moves the focus from one of these to the next one for j, and to the one before for k. @returns whether the key is one of these */
export function moveByKey(key: string, rows: Iterable<HTMLElement>, from: Element | null | undefined): boolean {
  if (key !== 'j' && key !== 'k') return false
  const all = [...rows]
  const at = from ? all.indexOf(from as HTMLElement) : -1
  all[Math.max(0, Math.min(all.length - 1, at + (key === 'j' ? 1 : -1)))]?.focus()
  return true
}

/** The links of the rows of the table that has the focus, or else of the first one of the view. */
export function rowLinks(): Iterable<HTMLElement> {
  const table = document.activeElement?.closest('table') ?? document.querySelector('main table')
  return table?.querySelectorAll<HTMLElement>('.row-link') ?? []
}

/** j and k move between the rows, and Enter follows the link of one. */
export function useRowKeys(): void {
  useKeys((event) => {
    const row = document.activeElement?.closest('tr')?.querySelector('.row-link')
    return !isTyping(event) && moveByKey(event.key, rowLinks(), row)
  })
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
