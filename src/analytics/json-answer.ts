import { RawJson } from '../http/raw-json.ts'

/** Line breaks are escaped inside strings, so these match only layout: rows are indented by two tabs, their members by more. */
const DATA_HEAD = '\t"data":\n\t['
const DATA_TAIL = '\n\t],\n'
const NEXT_ROW = ',\n\t\t{'

/**
 * Splits the engine's `JSON` output without parsing the rows, whose text is passed on.
 *
 * @param text output with at most one row more than `rowsMax`; that row is dropped
 */
export function readJsonAnswer(text: string, rowsMax: number) {
  const dataAt = text.indexOf(DATA_HEAD)
  const dataEnd = text.lastIndexOf(DATA_TAIL)
  const head = text.slice(0, dataAt).trimEnd().replace(/,$/, '')
  const { meta } = JSON.parse(`${head}}`) as { meta: { name: string; type: string }[] }
  const { rows: count } = JSON.parse(`{${text.slice(dataEnd + DATA_TAIL.length)}`) as { rows: number }
  const rows = text.slice(dataAt + DATA_HEAD.length, dataEnd)
  const truncated = count > rowsMax
  return {
    columns: meta,
    rows: new RawJson(`[${compact(truncated ? rows.slice(0, rows.lastIndexOf(NEXT_ROW)) : rows)}]`),
    rowCount: Math.min(count, rowsMax),
    truncated,
  }
}

/** Line breaks and tabs are escaped inside strings, so raw ones are only the engine's layout. */
function compact(rows: string): string {
  return rows.replace(/[\n\t]+/g, '')
}
