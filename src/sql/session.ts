import { renderTable, renderVertical, type TableLook } from '../cli/table.ts'
import type { Note } from '../cli/terminal.ts'
import { count, duration } from '../dashboard/page/format.ts'
import type { Answer } from './answer.ts'
import type { Format } from './args.ts'
import type { Output } from './output.ts'
import { createRowCount } from './row-count.ts'
import type { Params, Question, SqlService } from './service.ts'

/** What may change from one statement to the next. */
export interface View {
  format: Format
  /** Tell how long each answer took to come. */
  timing: boolean
  /** Values of placeholders. */
  params: Params
}

export interface SessionDeps {
  readonly service: SqlService
  readonly output: Output
  readonly note: Note
  /** Asked for each table since windows change. */
  readonly look: () => TableLook
  readonly view: View
}

/** Asks, and shows the answer as the view says. */
export interface Session {
  readonly view: View
  /**
   * @returns the rows of the answer; undefined where they cannot be counted as they come
   * @throws CliError, ReaderGone; what `signal` was aborted with
   */
  run(statement: string, signal?: AbortSignal): Promise<number | undefined>
  /** Shows what is no answer. */
  print(text: (look: TableLook) => string): Promise<void>
}

export function createSession({ service, output, note, look, view }: SessionDeps): Session {
  const showRows = async (answer: Answer) => {
    const table = view.format === 'table' ? renderTable(answer, look()) : undefined
    if (table === null) note(`${answer.columns.length} columns are too many for the width of this terminal`, 'dim')
    await output.write(table ?? renderVertical(answer, look()))
    note(summary(answer), 'dim')
  }
  const ask = async (question: Question, signal?: AbortSignal) => {
    const answer = await service.ask(question, signal)
    if (view.format === 'json') await output.write(`${answer.json}\n`)
    else await showRows(answer)
    if (answer.truncated)
      note(`CUT at ${count(answer.rows.length)} rows: there are more. Aggregate, or narrow it.`, 'yellowBold')
    return answer.rows.length
  }
  const download = async (question: Question, signal?: AbortSignal) => {
    const chunks = await service.download(question, view.format, signal)
    // An answer without a byte is an answer.
    await output.write('')
    const counted = createRowCount(view.format)
    for await (const chunk of chunks) {
      counted?.add(chunk)
      await output.write(chunk)
    }
    return counted?.rows
  }
  return {
    view,
    print: (text) => output.write(text(look())),
    async run(query, signal) {
      const startedAt = performance.now()
      const show = ['table', 'vertical', 'json'].includes(view.format) ? ask : download
      const rows = await show({ query, params: view.params }, signal)
      if (view.timing) note(`${(performance.now() - startedAt).toFixed(1)} ms until all of it was here`, 'dim')
      return rows
    },
  }
}

function summary({ rows, statistics, complete_through }: Answer): string {
  return [
    rowsText(rows.length),
    duration(statistics.elapsed_ms),
    size(statistics.bytes_read),
    `complete through ${complete_through}`,
  ].join(', ')
}

/** `1 row`, `1,204 rows` */
export function rowsText(rows: number): string {
  return `${count(rows)} ${rows === 1 ? 'row' : 'rows'}`
}

/** `73 bytes`, `1.2 kB` */
export function size(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`
  return bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`
}
