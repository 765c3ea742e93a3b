import { type Paint, pad, printable } from '../shared/terminal.ts'
import type { Schema } from './service.ts'

export function listTables({ tables }: Schema, paint: Paint, width: number): string {
  return listed(
    tables.map(({ name, description }) => [name, '', description]),
    paint,
    width,
  )
}

/** @returns null if the table does not exist */
export function listColumns({ tables }: Schema, table: string, paint: Paint, width: number): string | null {
  const found = tables.find(({ name }) => name === table.toLowerCase())
  if (found === undefined) return null
  return listed(
    found.columns.map(({ name, type, description }) => [name, type, description]),
    paint,
    width,
  )
}

/** The numbers begin at 1. */
export function listExamples({ examples }: Schema, paint: Paint, width: number): string {
  return listed(
    examples.map(({ title, description }, i) => [String(i + 1), title, description]),
    paint,
    width,
  )
}

/** Descriptions wrap at this width at least. */
const DESCRIPTION_WIDTH_MIN = 30

/** Aligns names, kinds and wrapped descriptions in columns. */
function listed(items: readonly (readonly [string, string, string])[], paint: Paint, width: number): string {
  const widest = (part: 0 | 1) => Math.max(0, ...items.map((item) => Bun.stringWidth(item[part])))
  const [names, kinds] = [widest(0), widest(1)]
  const indent = names + kinds + (kinds > 0 ? 6 : 4)
  const room = Math.max(DESCRIPTION_WIDTH_MIN, width - indent)
  const lines = items.map(([name, kind, description]) => {
    const head = `  ${paint('bold', pad(printable(name), names))}${kinds > 0 ? '  ' : ''}${pad(printable(kind), kinds)}`
    const text = Number.isFinite(room) ? Bun.wrapAnsi(printable(description), room) : printable(description)
    return `${head}  ${paint('dim', text.split('\n').join(`\n${' '.repeat(indent)}`))}\n`
  })
  return lines.join('')
}
