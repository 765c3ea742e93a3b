import { type ParseArgsConfig, parseArgs } from 'node:util'
import { CliError } from './error.ts'

type Options = NonNullable<ParseArgsConfig['options']>

/** The maximum edit distance of a typing error. */
const TYPOS_MAX = 3

/**
 * Parses a command line.
 *
 * @param help the help of the command, quoted to suggest an option
 * @throws CliError (exit code 2) that names the mistake and suggests an option
 */
export function parseOptions<const O extends Options>(
  argv: readonly string[],
  options: O,
  { help, allowPositionals = false }: { readonly help: string; readonly allowPositionals?: boolean },
) {
  try {
    return parseArgs({ args: [...argv], options, allowPositionals })
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    const [, unknown, word] = /^Unknown option '(--?([\w-]+))/.exec(message) ?? []
    if (unknown === undefined || word === undefined) throw new CliError(`${message}\nTry --help.`, 2)
    const near = nearest(word, Object.keys(options))
    const advice = near === undefined ? 'Try --help.' : `Did you mean\n${usageOf(near, help)}`
    throw new CliError(`unknown option ${unknown}. ${advice}`, 2)
  }
}

/** The line of the help that describes an option. */
export function usageOf(option: string, help: string): string {
  return help.split('\n').find((line) => new RegExp(`^ +(-\\w, )?--${option}\\b`).test(line)) ?? `  --${option}`
}

function nearest(word: string, names: readonly string[]): string | undefined {
  const [best] = names
    .map((name) => ({ name, typos: name.startsWith(word) || word.startsWith(name) ? 0 : distance(word, name) }))
    .sort((a, b) => a.typos - b.typos)
  return best !== undefined && best.typos <= Math.min(TYPOS_MAX, word.length - 1) ? best.name : undefined
}

/** Levenshtein distance. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++)
      next[j] = Math.min(next[j - 1]! + 1, row[j]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1))
    row = next
  }
  return row[b.length]!
}
