import { expect, test } from 'bun:test'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { eventually } from '../support/eventually.ts'
import { descendantsOf, isAlive, openTerminal, runProgram } from '../support/processes.ts'
import { temporaryDirectory } from '../support/teardown.ts'

const SETUP = join(import.meta.dir, '..', '..', 'src', 'cli', 'setup', 'main.ts')

/** A platform that needs no lockfile. */
const UNLOCKED = ['--os', 'darwin']

/** A project without packages; `postinstall` decides how long its installation takes, or whether it succeeds. */
async function project(postinstall: string): Promise<string> {
  const directory = await temporaryDirectory()
  await writeFile(join(directory, 'package.json'), JSON.stringify({ name: 'p', scripts: { postinstall } }))
  return directory
}

test('Ctrl-C during the installation of packages ends all processes, without a stack trace', async () => {
  const terminal = openTerminal([process.execPath, SETUP, ...UNLOCKED], { env: {}, cwd: await project('sleep 600') })
  await eventually(() => terminal.shown().includes('Installing packages') && descendantsOf(terminal.pid).length > 1, {
    timeoutMs: 20_000,
  })
  const descendants = descendantsOf(terminal.pid)
  terminal.type('\x03')
  expect(await terminal.exited).toBe(130)
  await eventually(() => !descendants.some(isAlive))
  // The progress line has been cleared, and nothing else was printed.
  expect(terminal.shown().split('\x1b[K').at(-1)?.replace('^C', '').trim()).toBe('')
})

test('a failed installation prints its error and stops the setup', async () => {
  const cwd = await project('echo no room left >&2; exit 3')
  const { code, stdout, stderr } = await runProgram([process.execPath, SETUP, ...UNLOCKED], { cwd })
  expect(code).toBe(1)
  expect(stderr).toStartWith('Installing packages …\n')
  expect(stderr).toContain('no room left')
  expect(stderr).toEndWith('setup: the packages could not be installed\n')
  expect(stdout).toBe('')
})
