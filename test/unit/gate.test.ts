import { expect, test } from 'bun:test'
import { join } from 'node:path'
import {
  campaignOutcomes,
  conclude,
  FLAKY_MAX,
  type Outcome,
  outcomeOf,
  outcomesOf,
  toRepeat,
} from '../gate/outcomes.ts'
import { temporaryDirectory } from '../support/teardown.ts'

/** How `.ci/run` counts, with the reports that `bun test` really writes. */

const PASSING = `import { test } from 'bun:test'\n`
const FILES = {
  'a.test.ts': `${PASSING}test('one', () => {}); test('two', () => {}); test.skipIf(true)('three', () => {})`,
  'fails.test.ts': `${PASSING}test('one', () => {}); test('two', () => { throw new Error('because of this') })`,
  'unloadable.test.ts': `throw new Error('at load')`,
  'dies.test.ts': `${PASSING}test('one', () => {}); test('two', async () => { process.kill(process.pid, 'SIGKILL'); await Bun.sleep(60_000) })`,
  'setup.test.ts': `import { beforeAll, test } from 'bun:test'\nbeforeAll(() => { throw new Error('before all') }); test('one', () => {})`,
} as const

async function outcomesFor(names: readonly (keyof typeof FILES)[]): Promise<Outcome[]> {
  const cwd = await temporaryDirectory()
  for (const name of names) await Bun.write(join(cwd, name), FILES[name])
  const report = join(cwd, 'report.xml')
  const command = [process.execPath, 'test', '--parallel=3', '--no-isolate', '--reporter=junit']
  const child = Bun.spawn([...command, `--reporter-outfile=${report}`], { cwd, stdout: 'pipe', stderr: 'pipe' })
  const [text, problems] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  const run = { report: await Bun.file(report).text(), output: text + problems, exitCode: await child.exited }
  return outcomesOf({ ...run, files: names }, 'here')
}

const counts = (outcomes: readonly Outcome[]) =>
  Object.fromEntries(outcomes.map(({ name, passed, failed, skipped }) => [name, [passed, failed, skipped]]))
const closing = (outcomes: readonly Outcome[], second: ReadonlyMap<Outcome, Outcome> = new Map()) =>
  conclude(outcomes, second).text.split('\n').at(-1)
const file = (name: string, passed: number, failed: number, place = 'here'): Outcome => ({
  ...{ name, place, isFile: true, passed, failed, skipped: 0, output: `output of ${name}\n(fail) one` },
})

test('a file that fails, dies, cannot be loaded or be set up has failed, and its output is kept', async () => {
  const outcomes = await outcomesFor([
    'a.test.ts',
    'fails.test.ts',
    'unloadable.test.ts',
    'dies.test.ts',
    'setup.test.ts',
  ])
  expect(counts(outcomes)).toEqual({
    'a.test.ts': [2, 0, 1],
    'fails.test.ts': [1, 1, 0],
    'unloadable.test.ts': [0, 1, 0],
    'dies.test.ts': [1, 1, 0],
    'setup.test.ts': [0, 1, 0],
  })
  const { text, isGreen } = conclude(outcomes, new Map())
  expect(isGreen).toBe(false)
  for (const cause of ['because of this', 'at load', 'SIGKILL', 'before all']) expect(text).toContain(cause)
  expect(text).toMatch(/^failed: fails\.test\.ts$[\s\S]*\n4 passed, 4 failed$/m)
  expect(text).not.toContain('(pass)')
})

test('a run without a failure is green', async () => {
  const outcomes = await outcomesFor(['a.test.ts'])
  expect(conclude(outcomes, new Map())).toEqual({
    text: `0 flaky, of at most ${FLAKY_MAX}\n2 passed, 0 failed`,
    isGreen: true,
  })
})

test('an exit code that no file explains is a failure, and so is a run without a report', () => {
  const passing = '<testsuites>\n  <testsuite name="a" file="a" tests="2" failures="0" skipped="0">\n'
  expect(closing(outcomesOf({ report: passing, output: '', exitCode: 1, files: ['a'] }, 'here'))).toBe(
    '2 passed, 1 failed',
  )
  expect(closing(outcomesOf({ report: '', output: '', exitCode: 0, files: ['a', 'b'] }, 'here'))).toBe(
    '0 passed, 2 failed',
  )
  expect(conclude([], new Map()).isGreen).toBe(false)
})

test('a file that passes when it is run again is flaky, named with its first output, and counts once', () => {
  const outcomes = [file('a', 5, 0), file('b', 3, 2), outcomeOf('a command', true, '')]
  expect(toRepeat(outcomes)).toEqual([outcomes[1]!])
  const passing = conclude(outcomes, new Map([[outcomes[1]!, { ...file('b', 5, 0), output: 'fine' }]]))
  expect(passing.isGreen).toBe(true)
  expect(passing.text).toBe(
    `flaky: b\n  output of b\n  (fail) one\n1 flaky, of at most ${FLAKY_MAX}\n11 passed, 0 failed`,
  )
  const failing = conclude(outcomes, new Map([[outcomes[1]!, file('b', 4, 1)]]))
  expect([failing.isGreen, failing.text]).toEqual([
    false,
    expect.stringMatching(/^failed: b\n[\s\S]*\n10 passed, 1 failed$/),
  ])
})

test('more failed files than may be flaky are not run again', () => {
  const failing = Array.from({ length: FLAKY_MAX + 1 }, (_, i) => file(`${i}`, 1, 1))
  expect(toRepeat(failing)).toEqual([])
  expect(toRepeat(failing.slice(1))).toEqual(failing.slice(1))
  expect(conclude(failing, new Map()).isGreen).toBe(false)
})

test('a file that runs again with more tools counts once, and a failure without them remains', () => {
  expect(closing([file('a', 2, 0, 'bare'), file('a', 9, 0)])).toBe('9 passed, 0 failed')
  const outcomes = [file('a', 2, 1, 'bare'), file('a', 9, 0)]
  expect(closing(outcomes)).toBe('9 passed, 1 failed')
  expect(closing(outcomes, new Map([[outcomes[0]!, file('a', 3, 0, 'bare')]]))).toBe('9 passed, 0 failed')
})

test('campaigns and commands are not run again; a campaign that does not come to its end has failed', () => {
  const output =
    'kills: a kill\n\nkills: passed in 3 s\n  kills: 4\n\n\nloop: FAILED in 5 s\n  ! too long\n\n1 campaigns passed, 1 failed\n'
  const outcomes = [...campaignOutcomes(['kills', 'loop', 'soak'], output), outcomeOf('start', false, 'no key')]
  expect(counts(outcomes)).toEqual({ kills: [1, 0, 0], loop: [0, 1, 0], soak: [0, 1, 0], start: [0, 1, 0] })
  expect(toRepeat(outcomes)).toEqual([])
  expect(conclude(outcomes, new Map()).text).toContain('failed: loop\n  loop: FAILED in 5 s\n    ! too long\n')
})
