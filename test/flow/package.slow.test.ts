import { expect, test } from 'bun:test'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import packageJson from '../../package.json'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/service.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'

/** What `npm pack` makes of this repository starts in an empty folder, on a machine that has only Node. */

const ROOT = join(import.meta.dir, '..', '..')
/** Hundreds of megabytes are copied, or downloaded where npm has not cached them. */
const INSTALL_MS = 900_000

/** With the variables that npm needs only, as a newcomer's shell would have it. */
async function run(command: readonly string[], cwd: string): Promise<string> {
  const { PATH = '', HOME = '' } = process.env
  const child = Bun.spawn([...command], { cwd, env: { PATH, HOME }, stdout: 'pipe', stderr: 'pipe' })
  const [output, problems] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0) throw new Error(`${command.join(' ')} failed:\n${output}${problems}`)
  return output
}

const okAt = async (url: string) => (await fetch(url).catch(() => null))?.ok === true

test(
  'the packed service installs with npm, starts in an empty folder, and stops',
  async () => {
    const [packed, folder] = await Promise.all([temporaryDirectory(), temporaryDirectory()])
    await run(['npm', 'pack', '--ignore-scripts', '--pack-destination', packed], ROOT)
    const [tarball] = await readdir(packed)
    await Bun.write(join(folder, 'package.json'), '{"name":"folder","private":true}')
    await run(['npm', 'install', '--prefer-offline', '--no-audit', '--no-fund', join(packed, tarball!)], folder)
    const installed = join(folder, 'node_modules', packageJson.name)
    // npm applies no patches, so the patched packages are part of ours.
    for (const name of Object.keys(packageJson.patchedDependencies).map((each) => each.replace(/@[^@]+$/, ''))) {
      const path = join('node_modules', name, 'package.json')
      expect(packageJson.bundleDependencies).toContain(name)
      expect(await Bun.file(join(installed, path)).exists()).toBe(true)
    }
    expect(await run(['npx', '--no-install', 'agent-run-service', '--version'], folder)).toBe(
      `${packageJson.version}\n`,
    )
    expect(await run(['npx', '--no-install', 'agent-run-service', 'tail', '--help'], folder)).toContain(
      'npx agent-run-service tail',
    )

    const url = `http://127.0.0.1:${freePort()}`
    const { PATH = '', HOME = '' } = process.env
    const child = Bun.spawn(['npx', '--no-install', 'agent-run-service', '--data', 'mine'], {
      cwd: folder,
      env: { PATH, HOME, PORT: new URL(url).port },
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'inherit',
    })
    atEnd(async () => child.kill('SIGTERM'))
    await eventually(() => okAt(`${url}/readyz`), { timeoutMs: 120_000 })
    const page = await (await fetch(`${url}/`)).text()
    const [, script] = /src="(\/dashboard\/[^"]+\.js)"/.exec(page) ?? []
    expect(await okAt(`${url}${script}`)).toBe(true)
    expect(await readdir(join(folder, 'mine'))).toContain('journal')
    child.kill('SIGTERM')
    await child.exited
    await eventually(async () => !(await okAt(`${url}/healthz`)), { timeoutMs: 20_000 })
    expect(await new Response(child.stdout).text()).toContain(`ready at ${url}`)
  },
  INSTALL_MS,
)
