import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryDirectory } from '../support/teardown.ts'
import { startProgram } from './servers.ts'

/** A server that offers its callers what ours offers for invokes. */
export interface Peer {
  readonly name: string
  readonly port: number
}

/** Not dependencies of the project: npm installs them when the benchmark runs, in a temporary directory. */
const PACKAGES = {
  '@mastra/core': '1.71.0',
  '@mastra/hono': '1.7.9',
  '@hono/node-server': '2.1.8',
  hono: '4.13.19',
  // Its own Node, because the machine's may be too old for it.
  node: '24.21.0',
}
const SERVER = 'peer-mastra.mjs'
const INSTALL_MS_MAX = 240_000

/** @returns null, with an explanation, where it cannot be installed, for example without a network */
export async function startPeer(
  agent: { readonly modelUrl: string; readonly id: string; readonly instructions: string },
  explain: (text: string) => void,
): Promise<Peer | null> {
  const name = `Mastra ${PACKAGES['@mastra/core']}`
  const dir = await temporaryDirectory()
  const problem = await install(dir)
  if (problem !== null) {
    explain(`skipped: npm cannot install ${name}: ${problem}`)
    return null
  }
  await copyFile(join(import.meta.dir, SERVER), join(dir, SERVER))
  const node = join(dir, 'node_modules', 'node', 'bin', 'node')
  const command = [node, join(dir, SERVER), agent.modelUrl, agent.id, agent.instructions]
  // Offline: it makes no requests to the internet.
  const { port } = await startProgram(command, { PATH: process.env.PATH, NODE_ENV: 'production', MASTRA_OFFLINE: '1' })
  return { name, port }
}

/** @returns the end of npm's output if it failed */
async function install(dir: string): Promise<string | null> {
  await Bun.write(join(dir, 'package.json'), JSON.stringify({ private: true, type: 'module', dependencies: PACKAGES }))
  try {
    const npm = Bun.spawn(['npm', 'install', '--no-audit', '--no-fund', '--loglevel=error'], {
      cwd: dir,
      // Without this, Bun passes on the variables that it was started with: npm would run under the `node` that is Bun.
      env: process.env,
      stdin: 'ignore',
      stdout: 'ignore',
      stderr: 'pipe',
      timeout: INSTALL_MS_MAX,
    })
    const [stderr, code] = await Promise.all([new Response(npm.stderr).text(), npm.exited])
    return code === 0 ? null : stderr.trim().split('\n').slice(-3).join(' ') || `it ended with ${code}`
  } catch (error) {
    return (error as Error).message
  }
}
