/** How many files may need a second run in one run of the gate. */
export const FLAKY_MAX = 3
const LINES_SHOWN = 200
const COLUMNS_SHOWN = 400

/** The result of one test file, campaign or command. */
export interface Outcome {
  /** A path for a test file; it may run in two places, with other tools in each. */
  readonly name: string
  readonly place: string
  readonly isFile: boolean
  readonly passed: number
  readonly failed: number
  readonly skipped: number
  readonly output: string
}

/** What `bun test` left behind. */
export interface TestRun {
  /** The file of `--reporter=junit`; empty if it was not written. */
  readonly report: string
  readonly output: string
  readonly exitCode: number
  /** The files that it should have run. */
  readonly files: readonly string[]
}

/**
 * The outcome of each file. A file that cannot be loaded is missing in the report, and an error between two tests is
 * only in the output: both have failed. An exit code that no file explains is a failure, too.
 */
export function outcomesOf({ report, output, exitCode, files }: TestRun, place: string): Outcome[] {
  const counts = new Map(
    [...report.matchAll(/^ {2}<testsuite [^>]*\bfile="([^"]+)"[^>]*>/gm)].map(([tag, file = '']) => [file, tag]),
  )
  const texts = outputOfFiles(output)
  const outcomes = [...new Set([...files, ...counts.keys()])].map((file): Outcome => {
    const tag = counts.get(file)
    const text = texts.get(file) ?? ''
    const [tests, failures, skipped] = ['tests', 'failures', 'skipped'].map((name) => numberIn(tag ?? '', name))
    const failed = Math.max(failures!, tag === undefined || /^# Unhandled error/m.test(text) ? 1 : 0)
    const passed = tests! - failures! - skipped!
    return { name: file, place, isFile: true, passed, failed, skipped: skipped!, output: text }
  })
  if (exitCode === 0 || outcomes.some(({ failed }) => failed > 0)) return outcomes
  const unexplained = {
    name: `bun test ended with ${exitCode}`,
    place,
    isFile: false,
    passed: 0,
    failed: 1,
    skipped: 0,
  }
  return [...outcomes, { ...unexplained, output }]
}

/** A command or campaign, which counts as one. */
export function outcomeOf(name: string, isPassed: boolean, output: string): Outcome {
  const counts = { passed: isPassed ? 1 : 0, failed: isPassed ? 0 : 1, skipped: 0 }
  return { name, place: '', isFile: false, ...counts, output }
}

/** The outcomes of campaigns, from what `test:long` printed. One that is not named there did not finish. */
export function campaignOutcomes(names: readonly string[], output: string): Outcome[] {
  return names.map((name) => {
    const [, text = '', result] =
      new RegExp(`^(${name}: (passed|FAILED) in [\\s\\S]*?)(?:\\n\\n|(?!.|\\n))`, 'm').exec(output) ?? []
    return outcomeOf(name, result === 'passed', text || `${name} did not end:\n${output}`)
  })
}

/** The files that failed, to be run once more; none where so many failed that the gate stays red whatever they do. */
export function toRepeat(outcomes: readonly Outcome[]): readonly Outcome[] {
  const failed = outcomes.filter(({ isFile, failed }) => isFile && failed > 0)
  return failed.length > FLAKY_MAX ? [] : failed
}

/**
 * The end of the gate's output: the output of what failed first, what is flaky, and the counts.
 * @param outcomes in the order in which they ran; a file that ran in a second place counts there
 * @param second the second run of files that had failed
 */
export function conclude(outcomes: readonly Outcome[], second: ReadonlyMap<Outcome, Outcome>) {
  const settled = outcomes.map((outcome) => second.get(outcome) ?? outcome)
  const last = new Map(settled.map((outcome) => [outcome.name, outcome]))
  const passed = sum([...last.values()].map((outcome) => outcome.passed))
  const failed = sum(settled.map((outcome) => outcome.failed))
  const lines = outcomes
    .filter((first) => first.failed > 0)
    .map((first) => `${second.get(first)?.failed === 0 ? 'flaky' : 'failed'}: ${first.name}\n${shown(first.output)}`)
  const flaky = [...second.values()].filter((outcome) => outcome.failed === 0).length
  const text = [...lines, `${flaky} flaky, of at most ${FLAKY_MAX}`, `${passed} passed, ${failed} failed`].join('\n')
  return { text, isGreen: failed === 0 && passed > 0 }
}

/** What `bun test` printed for each file: files run at the same time, and each part has a heading. */
function outputOfFiles(output: string): ReadonlyMap<string, string> {
  const [, ...parts] = output.split(/^(?:::group::)?(\S+\.test\.ts):$/m)
  const texts = new Map<string, string>()
  for (let i = 0; i < parts.length; i += 2) texts.set(parts[i]!, (texts.get(parts[i]!) ?? '') + parts[i + 1])
  return texts
}

/** The end of it, without what passed. */
function shown(output: string): string {
  const lines = output.split('\n').filter((line) => line.trim() !== '' && !/^\((pass|skip)\) /.test(line))
  return lines
    .slice(-LINES_SHOWN)
    .map((line) => `  ${line.slice(0, COLUMNS_SHOWN)}`)
    .join('\n')
}

function numberIn(tag: string, attribute: string): number {
  return Number(new RegExp(` ${attribute}="(\\d+)"`).exec(tag)?.[1] ?? 0)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}
