import type { AnchorHTMLAttributes, ComponentChildren, VNode } from 'preact'
import { useMemo } from 'preact/hooks'
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
  /** Its cells begin with the links of the rows; without it, those of the first column do. */
  readonly hasLink?: boolean
  /** Its cells name their rows. */
  readonly isHead?: boolean
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
  /** The link in a row, which a click anywhere in the row follows. */
  readonly link?: (row: Row) => AnchorHTMLAttributes
  readonly isSelected?: (row: Row) => boolean
  readonly attributes?: (row: Row) => Readonly<Record<string, string>>
  /** A row below another one, as wide as all columns. */
  readonly below?: (row: Row, columns: number) => VNode | undefined
  /**
   * As long as these are the same, an unchanged row is not drawn again: what its cells show follows from it alone, or from
   * components in them.
   */
  readonly keptFor?: readonly unknown[]
  readonly class?: string
  /** The class of the box in which the table scrolls; by default, the table has none. */
  readonly box?: string
}

/** Rows of data in columns. */
export function Table<Row extends object>({ columns, rows, keyOf, link, below, keptFor, ...props }: TableProps<Row>) {
  const { isSelected, attributes, class: name = '', box } = props
  const shown = columns.filter((column) => column !== false)
  const linked = Math.max(
    0,
    shown.findIndex(({ hasLink }) => hasLink),
  )
  const drawn = useMemo(() => new WeakMap<Row, VNode>(), keptFor ?? [{}])
  const draw = (row: Row, index: number) => {
    const current = isSelected?.(row) ? 'true' : undefined
    return (
      <tr key={keyOf(row, index)} aria-current={current} {...attributes?.(row)}>
        {shown.map((column, at) => {
          const Cell = column.isHead ? 'th' : 'td'
          return (
            <Cell key={at} class={classOf(column)} {...(column.isHead && { scope: 'row' })}>
              {at === linked && link && <a class="row-link" aria-current={current} {...link(row)} />}
              {column.cell(row)}
            </Cell>
          )
        })}
      </tr>
    )
  }
  const lines = rows.map((row, index) => {
    const line = drawn.get(row) ?? draw(row, index)
    drawn.set(row, line)
    const more = below?.(row, shown.length)
    return more === undefined ? line : [line, more]
  })
  const table = (
    <table class={link === undefined ? name : `row-links ${name}`}>
      <thead>
        <tr>
          {shown.map((column, at) => (
            <Head key={at} {...column} />
          ))}
        </tr>
      </thead>
      <tbody>{lines}</tbody>
    </table>
  )
  return box === undefined ? table : <div class={box}>{table}</div>
}

interface RowKeys {
  /** What can have the focus, one of each row; by default, the links of the table that has it, or else of the first one. */
  readonly rows?: () => Iterable<HTMLElement>
  /** The one of the row that has the focus; by default, the link of the table's row. */
  readonly current?: () => HTMLElement | null | undefined
  /** The other keys of the view, before those that move. @returns whether the key is one of these */
  readonly others?: (event: KeyboardEvent) => boolean
}

/** j and k move between the rows, and Enter follows the link of one. */
export function useRowKeys({ rows = rowLinks, current = rowLink, others }: RowKeys = {}): void {
  useKeys((event) => others?.(event) || (!isTyping(event) && moveByKey(event.key, rows(), current())))
}

/** Moves the focus from one of these to the next one for j, and to the one before for k. @returns whether the key is one of these */
export function moveByKey(key: string, rows: Iterable<HTMLElement>, from: Element | null | undefined): boolean {
  if (key !== 'j' && key !== 'k') return false
  const all = [...rows]
  const at = from ? all.indexOf(from as HTMLElement) : -1
  all[Math.max(0, Math.min(all.length - 1, at + (key === 'j' ? 1 : -1)))]?.focus()
  return true
}

function rowLinks(): Iterable<HTMLElement> {
  const table = document.activeElement?.closest('table') ?? document.querySelector('main table')
  return table?.querySelectorAll<HTMLElement>('.row-link') ?? []
}

function rowLink() {
  return document.activeElement?.closest('tr')?.querySelector<HTMLElement>('.row-link')
}

/** The head of a column, a button if the rows can be sorted by it. */
function Head({ title, sort, ...column }: HeadProps) {
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
