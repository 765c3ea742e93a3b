import { CliError, HelpRequest } from './error.ts'
import { Output, ReaderGone } from './output.ts'
import { createPaint, type Note, printable } from './terminal.ts'

/**
 * Runs a command and exits, with the code that `main` returns (default: 0) or with that of its CliError.
 *
 * @param expected errors of which only the message is shown (exit code 1); others are bugs and show their stack
 */
export async function runMain(
  main: (() => Promise<number>) | (() => Promise<void>),
  expected: readonly (new (...args: never[]) => Error)[] = [],
): Promise<never> {
  try {
    process.exit((await main()) as number | undefined)
  } catch (error) {
    if (error instanceof HelpRequest) {
      await new Output().write(error.message).catch(() => {})
      process.exit(0)
    }
    if (error instanceof ReaderGone) process.exit(0)
    const isExpected = error instanceof CliError || expected.some((each) => error instanceof each)
    if (!isExpected) throw error
    createNote(isColorOff(process.env))((error as Error).message, 'red')
    process.exit(error instanceof CliError ? error.exitCode : 1)
  }
}

/** Notes on standard error, so that standard output holds only the result. */
export function createNote(noColor: boolean): Note {
  const { stderr } = process
  const paint = createPaint(stderr.isTTY === true && !noColor)
  return (text, style) => {
    stderr.write(`${paint(style, text.split('\n').map(printable).join('\n'))}\n`)
  }
}

/** See https://no-color.org. */
export function isColorOff(env: Readonly<Record<string, string | undefined>>): boolean {
  return (env.NO_COLOR ?? '') !== ''
}
