import { expect, test } from 'bun:test'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { eventually } from '../support/eventually.ts'
import { childrenOf } from '../support/processes.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'

const SETUP = join(import.meta.dir, '..', '..', 'src', 'cli', 'setup', 'main.ts')

/** A platform that needs no lockfile. */
const UNLOCKED = ['--os', 'darwin']

/** A project without packages; `postinstall` decides how long its installation takes, or whether it succeeds. */
async function project(postinstall: string): Promise<string> {
  const directory = await temporaryDirectory()
  await writeFile(join(directory, 'package.json'), JSON.stringify({ name: 'p', scripts: { postinstall } }))
  return directory
}

function descendantsOf(pid: number): number[] {
  return childrenOf(pid).flatMap((child) => [child.pid, ...descendantsOf(child.pid)])
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

test('Ctrl-C during the installation of packages ends all processes, without a stack trace', async () => {
  const decoder = new TextDecoder()
  let shown = ''
  const child = Bun.spawn([process.execPath, SETUP, ...UNLOCKED], {
    cwd: await project('sleep 600'),
    env: { PATH: process.env.PATH ?? '', TERM: 'xterm' },
    terminal: {
      cols: 80,
      rows: 24,
      data(_terminal, data) {
        shown += decoder.decode(data, { stream: true })
      },
    },
  })
  atEnd(async () => child.kill('SIGKILL'))
  await eventually(() => shown.includes('Installing packages') && descendantsOf(child.pid).length > 1, {
    timeoutMs: 20_000,
  })
  const descendants = descendantsOf(child.pid)
  child.terminal?.write('\x03')
  expect(await child.exited).toBe(130)
  await eventually(() => !descendants.some(isAlive))
  // The progress line has been cleared, and nothing else was printed.
  expect(shown.split('\x1b[K').at(-1)?.replace('^C', '').trim()).toBe('')
  child.terminal?.close()
})

test('a failed installation prints its error and stops the setup', async () => {
  const child = Bun.spawn([process.execPath, SETUP, ...UNLOCKED], {
    cwd: await project('echo no room left >&2; exit 3'),
    env: { PATH: process.env.PATH ?? '' },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stderr, stdout] = await Promise.all([new Response(child.stderr).text(), new Response(child.stdout).text()])
  expect(await child.exited).toBe(1)
  expect(stderr).toStartWith('Installing packages …\n')
  expect(stderr).toContain('no room left')
  expect(stderr).toEndWith('setup: the packages could not be installed\n')
  expect(stdout).toBe('')
})
