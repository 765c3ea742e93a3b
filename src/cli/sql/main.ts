import { bytes } from '../../base/format.ts'
import { CliError } from '../shared/error.ts'
import { createNote, runMain } from '../shared/main.ts'
import type { TableLook } from '../shared/table.ts'
import { createPaint } from '../shared/terminal.ts'
import { isBinary, readArgs, type SqlOptions } from './args.ts'
import { historyPath, openHistory } from './history.ts'
import { type Output, ReaderGone, toFile, toStream } from './output.ts'
import { runPrompt } from './prompt.ts'
import { createSqlService } from './service.ts'
import { createSession, type Session } from './session.ts'
import { splitStatements } from './statements.ts'

const { stdin, stdout } = process

/** `bun run sql`: see `args.ts`. */
async function main(): Promise<void> {
  const options = readArgs(Bun.argv.slice(2), process.env)
  const { query, file } = options
  const isTerminal = stdin.isTTY === true && stdout.isTTY === true
  const run = query === undefined && file === undefined && isTerminal ? openPrompt : runQueries
  try {
    await run(options)
  } catch (error) {
    // The reader closed the pipe: `bun run sql … | head`.
    if (!(error instanceof ReaderGone)) throw error
  }
}

async function runQueries(options: SqlOptions): Promise<void> {
  const { format, output, params, noColor } = options
  if (output === undefined && stdout.isTTY === true && isBinary(format))
    throw new CliError(`${format} is a binary format: use --output <path>`, 2)
  const written = output === undefined ? undefined : toFile(output)
  const target = written ?? toStream(stdout)
  const note = createNote(noColor)
  const session = createSession({
    service: createSqlService(options),
    output: target,
    note,
    look: () => lookOf(output === undefined && stdout.isTTY === true, noColor),
    view: { format, timing: false, params },
  })
  await runAll(await readQuery(options), session, target)
  await target.end()
  if (written !== undefined) note(`wrote ${bytes(written.bytes)} to ${written.path}`, 'dim')
}

async function openPrompt(options: SqlOptions): Promise<void> {
  const { url, format, output, params, noColor } = options
  if (output !== undefined || isBinary(format))
    throw new CliError('--output, parquet and arrow cannot be combined with the prompt: pass a query', 2)
  const note = createNote(noColor)
  const service = createSqlService(options)
  const schema = await service.schema()
  const history = await openHistory(historyPath(process.env), (problem) => note(problem, 'yellowBold'))
  const look = () => lookOf(true, noColor)
  const session = createSession({
    service,
    output: toStream(stdout),
    note,
    look,
    view: { format, timing: false, params },
  })
  const stop = new AbortController()
  // The prompt must restore the terminal before the process exits.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop.abort())
  note(`${url}: end statements with a semicolon; \\? shows help, Ctrl-D exits`, 'dim')
  await runPrompt({ input: stdin, output: stdout, session, schema, history, note }, stop.signal)
}

async function runAll(text: string, session: Session, output: Output): Promise<void> {
  const { complete, rest } = splitStatements(text)
  const statements = rest === '' ? complete : [...complete, rest]
  const { format } = session.view
  if (statements.length === 0) throw new CliError('no query: pass one in quotes, with --file or through a pipe', 2)
  if (statements.length > 1 && isBinary(format))
    throw new CliError(`a ${format} file holds the result of one query; got ${statements.length} queries`, 2)
  for (const [i, statement] of statements.entries()) {
    if (i > 0 && (format === 'table' || format === 'vertical')) await output.write('\n')
    await session.run(statement)
  }
}

async function readQuery({ query, file }: SqlOptions): Promise<string> {
  if (query !== undefined) return query
  if (file === undefined) return stdin.isTTY === true ? '' : Bun.stdin.text()
  try {
    return await Bun.file(file).text()
  } catch (error) {
    throw new CliError(`cannot read ${file}: ${error instanceof Error ? error.message : error}`, 2, { cause: error })
  }
}

function lookOf(isTerminal: boolean, noColor: boolean): TableLook {
  const paint = createPaint(isTerminal && !noColor)
  if (!isTerminal) return { paint, width: Number.POSITIVE_INFINITY, frame: 'plain' }
  const { LC_ALL, LC_CTYPE, LANG } = process.env
  const locale = LC_ALL || LC_CTYPE || LANG || ''
  const frame = /utf-?8/i.test(locale) ? 'box' : 'ascii'
  // A terminal of unknown width reports 0.
  return { paint, width: stdout.columns || Number.POSITIVE_INFINITY, frame }
}

await runMain(main)
