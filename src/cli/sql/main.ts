import { bytes, count, duration } from '../../base/format.ts'
import { CliError } from '../shared/error.ts'
import { createNote, runMain } from '../shared/main.ts'
import { Output } from '../shared/output.ts'
import { PLAIN_LOOK, renderTable, renderVertical, terminalLook } from '../shared/table.ts'
import { isBinary, readArgs, type SqlOptions } from './args.ts'
import { runPrompt } from './prompt.ts'
import { createSqlService, type QueryResult, readResult } from './service.ts'
import { splitStatements } from './statements.ts'

const { stdin, stdout } = process

/** `bun run sql`: see `args.ts`. */
async function main(): Promise<void> {
  const options = readArgs(Bun.argv.slice(2), process.env)
  const { url, query, file, format, output: path, noColor } = options
  const note = createNote(noColor)
  const output = new Output(path)
  const run = createRun(options, output)
  if (query === undefined && file === undefined && stdin.isTTY === true && stdout.isTTY === true) {
    if (path !== undefined || isBinary(format))
      throw new CliError('--output, parquet and arrow cannot be combined with the prompt: pass a query', 2)
    note(`${url}: end statements with a semicolon; Ctrl-D exits`, 'dim')
    return runPrompt(run, note)
  }
  if (path === undefined && stdout.isTTY === true && isBinary(format))
    throw new CliError(`${format} is a binary format: use --output <path>`, 2)
  const statements = await readStatements(options)
  for (const [i, statement] of statements.entries()) {
    if (i > 0 && (format === 'table' || format === 'vertical')) await output.write('\n')
    await run(statement)
  }
  await output.end()
  if (path !== undefined) note(`wrote ${bytes(output.bytes)} to ${path}`, 'dim')
}

async function readStatements({ query, file, format }: SqlOptions): Promise<string[]> {
  const text = query ?? (file !== undefined ? await readFile(file) : stdin.isTTY === true ? '' : await Bun.stdin.text())
  const { complete, rest } = splitStatements(text)
  const statements = rest === '' ? [...complete] : [...complete, rest]
  if (statements.length === 0) throw new CliError('no query: pass one in quotes, with --file or through a pipe', 2)
  if (statements.length > 1 && isBinary(format))
    throw new CliError(`a ${format} file holds the result of one query; got ${statements.length} queries`, 2)
  return statements
}

async function readFile(path: string): Promise<string> {
  try {
    return await Bun.file(path).text()
  } catch (error) {
    throw new CliError(`cannot read ${path}: ${error instanceof Error ? error.message : error}`, 2, { cause: error })
  }
}

/** A function that runs one statement and writes its result. */
function createRun(options: SqlOptions, output: Output) {
  const { format, noColor } = options
  const query = createSqlService(options)
  const note = createNote(noColor)
  const showRows = async (result: QueryResult) => {
    const look = options.output === undefined && stdout.isTTY === true ? terminalLook(process.env, noColor) : PLAIN_LOOK
    const table = format === 'table' ? renderTable(result, look) : undefined
    if (table === null) note(`too many columns (${result.columns.length}) for the width of this terminal`, 'dim')
    await output.write(table ?? renderVertical(result, look))
    note(summary(result), 'dim')
  }
  return async (statement: string, signal?: AbortSignal): Promise<void> => {
    if (format !== 'table' && format !== 'vertical' && format !== 'json') {
      const chunks = await query(statement, format, signal)
      // Creates the file even if the result is empty.
      await output.write('')
      for await (const chunk of chunks) await output.write(chunk)
      return
    }
    const chunks = await Array.fromAsync(await query(statement, 'json', signal))
    const result = readResult(Buffer.concat(chunks).toString())
    if (format === 'json') await output.write(`${result.json}\n`)
    else await showRows(result)
    if (result.truncated)
      note(`TRUNCATED to ${count(result.rows.length)} rows. Aggregate, or filter more.`, 'yellowBold')
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

await runMain(main)
