import { setImmediate as nextIteration } from 'node:timers/promises'
import { RawJson } from '../../base/raw-json.ts'

/** Line breaks are escaped inside strings, so these match only layout: rows are indented by two tabs, their members by more. */
const DATA_HEAD = '\t"data":\n\t['
const DATA_TAIL = '\n\t],\n'
const NEXT_ROW = ',\n\t\t{'
/** Characters: about 5 ms. */
const COMPACTED_PER_SLICE = 1 << 20

/**
 * Splits the engine's `JSON` output without parsing the rows, whose text is passed on.
 *
 * @param text output with at most one row more than `rowsMax`; that row is dropped
 */
export async function readJsonAnswer(text: string, rowsMax: number) {
  const dataAt = text.indexOf(DATA_HEAD)
  const dataEnd = text.lastIndexOf(DATA_TAIL)
  const head = text.slice(0, dataAt).trimEnd().replace(/,$/, '')
  const { meta } = JSON.parse(`${head}}`) as { meta: { name: string; type: string }[] }
  const { rows: count } = JSON.parse(`{${text.slice(dataEnd + DATA_TAIL.length)}`) as { rows: number }
  const rows = text.slice(dataAt + DATA_HEAD.length, dataEnd)
  const truncated = count > rowsMax
  return {
    columns: meta,
    rows: new RawJson(`[${await compact(truncated ? rows.slice(0, rows.lastIndexOf(NEXT_ROW)) : rows)}]`),
    rowCount: Math.min(count, rowsMax),
    truncated,
  }
}

/**
 * Line breaks and tabs are escaped inside strings, so raw ones are only the engine's layout. Yields to the event loop in
 * between: an answer may have 32 MiB.
 */
async function compact(rows: string): Promise<string> {
  let text = ''
  for (let at = 0; at < rows.length; at += COMPACTED_PER_SLICE) {
    if (at > 0) await nextIteration()
    text += rows.slice(at, at + COMPACTED_PER_SLICE).replace(/[\n\t]+/g, '')
  }
  return text
}
