import type { TableLook } from '../shared/table.ts'
import { type Note, pad, printable } from '../shared/terminal.ts'
import { parseParam, TEXT_FORMATS } from './args.ts'
import type { Schema } from './service.ts'
import type { Session } from './session.ts'

interface CommandDeps {
  readonly schema: Schema | null
  readonly session: Session
  readonly note: Note
  /** Runs a statement as if it had been typed. */
  readonly run: (statement: string) => Promise<unknown>
  readonly quit: () => void
}

interface Command {
  /** The name and its aliases. */
  readonly names: readonly string[]
  readonly argument: string
  readonly help: string
  readonly run: (deps: CommandDeps, argument: string) => Promise<void> | void
}

const COMMANDS: readonly Command[] = [
  { names: ['\\d'], argument: '[table]', help: 'lists the tables, or the columns of one', run: describe },
  { names: ['\\e', '\\examples'], argument: '[n]', help: 'lists example queries, or runs the n-th', run: examples },
  { names: ['\\x'], argument: '', help: 'switches between one value per line and tables', run: toggleVertical },
  { names: ['\\format'], argument: '<format>', help: `sets the format: ${TEXT_FORMATS.join(', ')}`, run: setFormat },
  {
    names: ['\\param'],
    argument: '[name=value]',
    help: 'sets the value of {name:Type}, or lists all values',
    run: setParam,
  },
  {
    names: ['\\timing'],
    argument: '',
    help: 'shows how long each query takes, or stops doing so',
    run: toggleTiming,
  },
  { names: ['\\q'], argument: '', help: 'exits; so does Ctrl-D', run: ({ quit }) => quit() },
  { names: ['\\?'], argument: '', help: 'shows this help', run: ({ note }) => note(helpText(), 'dim') },
]

export const COMMAND_NAMES: readonly string[] = COMMANDS.flatMap(({ names }) => names)

/** @param line begins with a backslash */
export async function runCommand(line: string, deps: CommandDeps): Promise<void> {
  const [, name, argument] = /^(\S+)\s*(.*)$/.exec(line.trim().replace(/;$/, '')) as unknown as [string, string, string]
  const command = COMMANDS.find(({ names }) => names.includes(name))
  if (command === undefined) deps.note(`unknown command ${name}; \\? lists the commands`, 'red')
  else await command.run(deps, argument.trim())
}

function helpText(): string {
  const lines = COMMANDS.map(({ names, argument, help }) => `  ${`${names.join(', ')} ${argument}`.padEnd(22)}${help}`)
  return [
    'A statement ends with a semicolon and may span several lines. Ctrl-C discards it, or cancels the running query.',
    'Tab completes keywords, tables and columns; the up arrow recalls earlier statements.',
    ...lines,
  ].join('\n')
}

async function describe({ schema, session, note }: CommandDeps, name: string): Promise<void> {
  if (schema === null) return note(UNDESCRIBED, 'red')
  const { tables } = schema
  if (name === '') return session.print(alignedColumns(tables.map(({ name, description }) => [name, '', description])))
  const table = tables.find((each) => each.name === name.toLowerCase())
  if (table !== undefined)
    return session.print(alignedColumns(table.columns.map(({ name, type, description }) => [name, type, description])))
  const names = tables.map((each) => each.name).join(', ')
  return session.print(({ paint }) => `${paint('red', `no table ${printable(name)}; the tables are ${names}`)}\n`)
}

async function examples({ schema, session, note, run }: CommandDeps, argument: string): Promise<void> {
  if (schema === null) return note(UNDESCRIBED, 'red')
  const items = schema.examples.map(({ title, description }, i) => [String(i + 1), title, description] as const)
  if (argument === '') return session.print(alignedColumns(items))
  const example = schema.examples[Number(argument) - 1]
  if (example === undefined)
    return note(`\\e takes a number from 1 to ${schema.examples.length}; got "${argument}"`, 'red')
  note(example.query, 'dim')
  const { params = {} } = example
  session.view.params = { ...session.view.params, ...params }
  for (const param of Object.entries(params)) note(`\\param ${shownParam(param)}`, 'dim')
  await run(example.query)
}

const UNDESCRIBED = 'this service does not describe its tables'

function toggleVertical({ session: { view }, note }: CommandDeps): void {
  view.format = view.format === 'vertical' ? 'table' : 'vertical'
  note(view.format === 'vertical' ? 'one value per line' : 'tables', 'dim')
}

function setFormat({ session: { view }, note }: CommandDeps, argument: string): void {
  const format = TEXT_FORMATS.find((each) => each === argument)
  if (format !== undefined) view.format = format
  const problem = `\\format takes ${TEXT_FORMATS.join(', ')}; the format is still ${view.format}`
  note(format === undefined ? problem : `format ${format}`, format === undefined ? 'red' : 'dim')
}

function setParam({ session: { view }, note }: CommandDeps, argument: string): void {
  const param = parseParam(argument)
  if (param !== null) view.params = { ...view.params, [param[0]]: param[1] }
  const list = Object.entries(view.params).map(shownParam)
  if (param === null && argument !== '') note(`\\param takes name=value; got "${argument}"`, 'red')
  else note(list.join('\n') || 'no parameters are set', 'dim')
}

function shownParam([name, value]: [string, unknown]): string {
  return `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`
}

function toggleTiming({ session: { view }, note }: CommandDeps): void {
  view.timing = !view.timing
  note(`timing is ${view.timing ? 'on' : 'off'}`, 'dim')
}

/** Descriptions wrap at this width at least. */
const DESCRIPTION_WIDTH_MIN = 30

/** Aligns names, kinds and wrapped descriptions in columns. */
function alignedColumns(items: readonly (readonly [string, string, string])[]): (look: TableLook) => string {
  const widest = (part: 0 | 1) => Math.max(0, ...items.map((item) => Bun.stringWidth(item[part])))
  const [names, kinds] = [widest(0), widest(1)]
  const indent = names + kinds + (kinds > 0 ? 6 : 4)
  return ({ paint, width }) => {
    const room = Math.max(DESCRIPTION_WIDTH_MIN, width - indent)
    const lines = items.map(([name, kind, description]) => {
      const head = `  ${paint('bold', pad(printable(name), names))}${kinds > 0 ? '  ' : ''}${pad(printable(kind), kinds)}`
      const text = Number.isFinite(room) ? Bun.wrapAnsi(printable(description), room) : printable(description)
      return `${head}  ${paint('dim', text.split('\n').join(`\n${' '.repeat(indent)}`))}\n`
    })
    return lines.join('')
  }
}
