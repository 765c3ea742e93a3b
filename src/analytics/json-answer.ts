import { RawJson } from '../http/raw-json.ts'

/**
 * Takes the engine's `JSON` apart without parsing the rows: their text is the answer's.
 *
 * @param text of at most one row more than `rowsMax`, which is left out
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

/** Line breaks and tabs are escaped inside of strings: those that stand here are the engine's layout. */
function compact(rows: string): string {
  return rows.replace(/[\n\t]+/g, '')
}

/** A line break is escaped inside of strings, so these mean what they say; rows stand two tabs in, their parts further. */
const DATA_HEAD = '\t"data":\n\t['
const DATA_TAIL = '\n\t],\n'
const NEXT_ROW = ',\n\t\t{'
