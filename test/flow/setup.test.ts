import { expect, test } from 'bun:test'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { eventually } from '../support/eventually.ts'
import { childrenOf } from '../support/processes.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'

const SETUP = join(import.meta.dir, '..', '..', 'src', 'setup', 'main.ts')

/** A platform for which no lockfile is needed. */
const UNLOCKED = ['--os', 'darwin']

/** A project without packages; `postinstall` is how long its installation takes, or whether it works. */
async function project(postinstall: string): Promise<string> {
  const directory = await temporaryDirectory()
  await writeFile(join(directory, 'package.json'), JSON.stringify({ name: 'p', scripts: { postinstall } }))
  return directory
}

function familyOf(pid: number): number[] {
  return childrenOf(pid).flatMap((child) => [child.pid, ...familyOf(child.pid)])
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

test('Ctrl-C while packages are installed ends everything, without a stack', async () => {
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
  await eventually(() => shown.includes('Installing packages') && familyOf(child.pid).length > 1, { timeoutMs: 20_000 })
  const family = familyOf(child.pid)
  child.terminal?.write('\x03')
  expect(await child.exited).toBe(130)
  await eventually(() => !family.some(isAlive))
  // The line of progress has been cleared away, and nothing else was said.
  expect(shown.split('\x1b[K').at(-1)?.replace('^C', '').trim()).toBe('')
  child.terminal?.close()
})

test('an installation that fails says why, and ends what would have followed', async () => {
  const child = Bun.spawn([process.execPath, SETUP, ...UNLOCKED], {
    cwd: await project('echo no room left >&2; exit 3'),
    env: { PATH: process.env.PATH ?? '' },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [said, printed] = await Promise.all([new Response(child.stderr).text(), new Response(child.stdout).text()])
  expect(await child.exited).toBe(1)
  expect(said).toStartWith('Installing packages …\n')
  expect(said).toContain('no room left')
  expect(said).toEndWith('setup: the packages could not be installed\n')
  expect(printed).toBe('')
})
