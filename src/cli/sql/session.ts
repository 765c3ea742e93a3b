import { bytes, count, duration } from '../../base/format.ts'
import { renderTable, renderVertical, type TableLook } from '../shared/table.ts'
import type { Note } from '../shared/terminal.ts'
import type { Format } from './args.ts'
import type { Output } from './output.ts'
import type { QueryResult } from './result.ts'
import type { Params, QueryRequest, SqlService } from './service.ts'

/** Settings that commands of the prompt can change. */
interface View {
  format: Format
  /** Whether to show how long each query takes. */
  timing: boolean
  params: Params
}

interface SessionDeps {
  readonly service: SqlService
  readonly output: Output
  readonly note: Note
  /** Called for each table, because windows are resized. */
  readonly look: () => TableLook
  readonly view: View
}

export type Session = ReturnType<typeof createSession>

/** Runs queries and shows their results. */
export function createSession({ service, output, note, look, view }: SessionDeps) {
  const showRows = async (result: QueryResult) => {
    const table = view.format === 'table' ? renderTable(result, look()) : undefined
    if (table === null) note(`too many columns (${result.columns.length}) for the width of this terminal`, 'dim')
    await output.write(table ?? renderVertical(result, look()))
    note(summary(result), 'dim')
  }
  const query = async (request: QueryRequest, signal?: AbortSignal) => {
    const result = await service.query(request, signal)
    if (view.format === 'json') await output.write(`${result.json}\n`)
    else await showRows(result)
    if (result.truncated)
      note(`TRUNCATED to ${count(result.rows.length)} rows. Aggregate, or filter more.`, 'yellowBold')
  }
  const download = async (request: QueryRequest, signal?: AbortSignal) => {
    const chunks = await service.download(request, view.format, signal)
    // Creates the file even if the result is empty.
    await output.write('')
    for await (const chunk of chunks) await output.write(chunk)
  }
  return {
    view,
    /** Shows text that is not a result. */
    print: (text: (look: TableLook) => string) => output.write(text(look())),
    /** @throws CliError, ReaderGone; the reason of `signal` when it aborts */
    async run(statement: string, signal?: AbortSignal): Promise<void> {
      const startedAt = performance.now()
      const run = ['table', 'vertical', 'json'].includes(view.format) ? query : download
      await run({ query: statement, params: view.params }, signal)
      if (view.timing) note(`${(performance.now() - startedAt).toFixed(1)} ms until the result was complete`, 'dim')
    },
  }
}

function summary({ rows, statistics, complete_through }: QueryResult): string {
  return [
    `${count(rows.length)} ${rows.length === 1 ? 'row' : 'rows'}`,
    duration(statistics.elapsed_ms),
    bytes(statistics.bytes_read),
    `complete through ${complete_through}`,
  ].join(', ')
}
