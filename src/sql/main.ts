import { CliError } from '../cli/error.ts'
import { type Format, HELP, isBinary, readArgs, type SqlOptions } from './args.ts'
import { historyPath, openHistory } from './history.ts'
import { type FileOutput, type Output, ReaderGone, toFile, toStream } from './output.ts'
import { runPrompt } from './prompt.ts'
import { rowsOfParquet } from './row-count.ts'
import { createSqlService } from './service.ts'
import { createSession, type Note, rowsText, type Session, size } from './session.ts'
import { splitStatements } from './statements.ts'
import type { TableLook } from './table.ts'
import { createPaint, printable } from './text.ts'

const { stdin, stdout, stderr } = process

/** `bun run sql`: see {@link HELP}. */
async function main(): Promise<void> {
  const options = readArgs(Bun.argv.slice(2), process.env)
  if (options === 'help') {
    stdout.write(HELP)
    return
  }
  const { query, file, format, output, params, noColor } = options
  const isTerminal = stdin.isTTY === true && stdout.isTTY === true
  if (query === undefined && file === undefined && isTerminal) return converse(options)
  if (output === undefined && stdout.isTTY === true && isBinary(format))
    throw new CliError(`${format} is nothing to look at: give --output <path>`, 2)
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
  const rows = await runAll(await readQuery(options), session, target)
  await target.end()
  if (written !== undefined) note(await tellOf(written, format, rows), 'dim')
}

/** What is to be said of a file: nobody sees what went into it. */
async function tellOf({ path, bytes }: FileOutput, format: Format, rows: number | undefined): Promise<string> {
  const counted = format === 'parquet' ? await rowsOfParquet(path) : rows
  return `wrote ${counted === undefined ? '' : `${rowsText(counted)}, `}${size(bytes)} to ${path}`
}

async function converse(options: SqlOptions): Promise<void> {
  const { url, format, output, params, noColor } = options
  if (output !== undefined || isBinary(format))
    throw new CliError('a prompt shows its answers; --output, parquet and arrow need a query', 2)
  const note = createNote(noColor)
  const service = createSqlService(options)
  const schema = await service.schema()
  const history = await openHistory(historyPath(process.env), (problem) => note(problem, 'yellow'))
  const look = () => lookOf(true, noColor)
  const session = createSession({
    service,
    output: toStream(stdout),
    note,
    look,
    view: { format, timing: false, params },
  })
  const stop = new AbortController()
  // The terminal must be put back as it was.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop.abort())
  note(`${url}: end statements with a semicolon; \\? helps, Ctrl-D leaves`, 'dim')
  await runPrompt({ input: stdin, output: stdout, session, schema, history, note }, stop.signal)
}

/** @returns the rows of all answers together; undefined where they cannot be counted as they come */
async function runAll(text: string, session: Session, output: Output): Promise<number | undefined> {
  const { complete, rest } = splitStatements(text)
  const statements = rest === '' ? complete : [...complete, rest]
  const { format } = session.view
  if (statements.length === 0) throw new CliError('no query: give one in quotes, with --file, or through a pipe', 2)
  if (statements.length > 1 && isBinary(format))
    throw new CliError(`a ${format} file holds the answer to one query; there are ${statements.length}`, 2)
  let rows: number | undefined = 0
  for (const [i, statement] of statements.entries()) {
    if (i > 0 && (format === 'table' || format === 'vertical')) await output.write('\n')
    const more = await session.run(statement)
    rows = rows === undefined || more === undefined ? undefined : rows + more
  }
  return rows
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

function createNote(noColor: boolean): Note {
  const paint = createPaint(stderr.isTTY === true && !noColor)
  return (text, style) => {
    stderr.write(`${paint(style, text.split('\n').map(printable).join('\n'))}\n`)
  }
}

function lookOf(isTerminal: boolean, noColor: boolean): TableLook {
  const paint = createPaint(isTerminal && !noColor)
  if (!isTerminal) return { paint, width: Number.POSITIVE_INFINITY, frame: 'plain' }
  const { LC_ALL, LC_CTYPE, LANG } = process.env
  const locale = LC_ALL || LC_CTYPE || LANG || ''
  const frame = /utf-?8/i.test(locale) ? 'box' : 'ascii'
  // A terminal that does not know its width says 0.
  return { paint, width: stdout.columns || Number.POSITIVE_INFINITY, frame }
}

try {
  await main()
  process.exit(0)
} catch (error) {
  // Whoever read us has seen enough: `bun run sql … | head`.
  if (error instanceof ReaderGone) process.exit(0)
  if (!(error instanceof CliError)) throw error
  createNote((process.env.NO_COLOR ?? '') !== '')(error.message, 'red')
  process.exit(error.exitCode)
}
