import { type ParseArgsConfig, parseArgs } from 'node:util'
import { closest, distance } from 'fastest-levenshtein'
import { CliError, HelpRequest } from './error.ts'

/** An option of a command. */
interface Option {
  readonly type: 'string' | 'boolean'
  readonly short?: string
  readonly multiple?: boolean
  /** What the help shows in place of the value: `<path>`. */
  readonly value?: string
  readonly help: string
}

export type Options = Readonly<Record<string, Option>>

const HELP_OPTION = { help: { type: 'boolean', short: 'h', help: 'shows this help' } } as const

/** What a command takes, in the order in which `--help` shows it. */
export interface Command<O extends Options> {
  /** What the command does, in one sentence. */
  readonly summary: string
  /** One line for each form of the command. */
  readonly usage: readonly string[]
  /** Besides `--help`, which every command has. */
  readonly options: O
  readonly notes: string
}

export function helpText({ summary, usage, options, notes }: Command<Options>): string {
  const indented = (lines: readonly string[]) => lines.map((line) => `  ${line}\n`).join('')
  const all = { ...options, ...HELP_OPTION }
  const optionLines = Object.keys(all).map((name) => `${optionLine(all, name)}\n`)
  return `${summary}\n\n${indented(usage)}\n${optionLines.join('')}\n${notes.trim()}\n${EXIT_CODES}\n`
}

const EXIT_CODES = 'Exit code: 0 on success, 1 on failure, 2 for an invalid command line.'

/** The line of the help that describes an option. */
export function optionLine(options: Options, name: string): string {
  const width = Math.max(...Object.entries(options).map((option) => usageOf(...option).length))
  const option = options[name]!
  return `  ${usageOf(name, option).padEnd(width)}   ${option.help}`
}

function usageOf(name: string, { short, value }: Option): string {
  return `${short === undefined ? '' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}`
}

/**
 * Parses a command line.
 *
 * @throws CliError (exit code 2) that names the mistake and suggests an option; HelpRequest for `--help`
 */
export function parseOptions<const O extends NonNullable<ParseArgsConfig['options']> & Options>(
  argv: readonly string[],
  command: Command<O>,
  { allowPositionals = false }: { readonly allowPositionals?: boolean } = {},
) {
  const { options } = command
  const args = parse(argv, { ...options, ...HELP_OPTION }, allowPositionals)
  if (args.values.help === true) throw new HelpRequest(helpText(command))
  return args as ReturnType<typeof parseArgs<{ options: O; allowPositionals: true }>>
}

function parse(
  argv: readonly string[],
  options: NonNullable<ParseArgsConfig['options']> & Options,
  allowPositionals: boolean,
) {
  try {
    return parseArgs({ args: [...argv], options, allowPositionals })
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    const [, unknown, word] = /^Unknown option '(--?([\w-]+))/.exec(message) ?? []
    if (unknown === undefined || word === undefined) throw new CliError(`${message}\nTry --help.`, 2)
    const near = suggest(word, Object.keys(options))
    throw unknownOption(unknown, near === undefined ? undefined : `\n${optionLine(options, near)}`)
  }
}

/** @param near what was probably meant */
export function unknownOption(option: string, near: string | undefined): CliError {
  return new CliError(`unknown option ${option}. ${near === undefined ? 'Try --help.' : `Did you mean${near}`}`, 2)
}

/**
 * @param what what the names stand for
 * @returns the names
 * @throws CliError (exit code 2) for one that is not known
 */
export function readNames(what: string, names: readonly string[], known: readonly string[]): readonly string[] {
  const unknown = names.find((name) => !known.includes(name))
  if (unknown === undefined) return names
  const near = suggest(unknown, known)
  const advice = near === undefined ? `Expected ${known.join(', ')}.` : `Did you mean ${near}?`
  throw new CliError(`unknown ${what} ${unknown}. ${advice}`, 2)
}

/** The maximum edit distance of a misspelling. */
const TYPOS_MAX = 3

/** The name that a misspelt or incomplete word most likely means. */
export function suggest(word: string, names: readonly string[]): string | undefined {
  const sameStart = names.find((name) => name.startsWith(word) || word.startsWith(name))
  if (sameStart !== undefined) return sameStart
  const best = closest(word, names)
  return distance(word, best) <= Math.min(TYPOS_MAX, word.length - 1) ? best : undefined
}
