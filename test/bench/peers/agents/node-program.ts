import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createLog } from '../../../../src/base/log.ts'
import { startEmbeddedPostgres } from '../../../../src/stores/postgres/embedded.ts'
import { temporaryDirectory } from '../../../support/teardown.ts'
import { nodeOf } from '../install.ts'
import { answers, isListening, lastingPort, type PeerProcess, startPeerProcess } from '../process.ts'
import { type AgentSystem, callJson, PROMPT, type RunState, type World } from './agent-peer.ts'

const PROGRAMS = join(import.meta.dir, 'programs')
const POSTGRES_CONNECTIONS = 100

/** A program of `programs/`, run by the Node of its packages. */
export interface NodeProgram {
  readonly url: string
  readonly directory: string
  kill(): Promise<void>
  restart(): Promise<void>
  stop(): Promise<void>
}

interface NodeProgramOptions {
  /** Of `npmPackages`. */
  readonly packages: string
  /** The program, and the files that it imports. */
  readonly files: readonly [main: string, ...others: string[]]
  readonly world: World
  readonly port: number
  readonly env?: Readonly<Record<string, string>>
  /** Instead of the program's name: what Node runs. */
  readonly command?: readonly string[]
  /** A path that answers once it is ready; by default it only has to listen. */
  readonly readyPath?: string
}

/** Starts a program in a directory of its own, where it finds its packages. @throws Unavailable */
export async function startNodeProgram(options: NodeProgramOptions): Promise<NodeProgram> {
  const { packages, files, world, port, readyPath } = options
  const directory = await temporaryDirectory()
  for (const file of files) await copyFile(join(PROGRAMS, file), join(directory, file))
  await Bun.write(join(directory, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
  await Bun.$`ln -s ${join(packages, 'node_modules')} ${join(directory, 'node_modules')}`.quiet()
  const url = `http://127.0.0.1:${port}`
  const env = {
    ...{ MODEL_URL: world.modelUrl, TOOLS_URL: world.toolsUrl, PROMPT, PORT: `${port}`, NODE_ENV: 'production' },
    ...options.env,
  }
  const command = [nodeOf(packages), ...(options.command ?? [files[0]])]
  const isReady = () => (readyPath === undefined ? isListening(port) : answers(`${url}${readyPath}`))
  const start = () => startPeerProcess(command, { cwd: directory, env, isReady })
  let server: PeerProcess = await start()
  return {
    ...{ url, directory },
    kill: () => server.kill(),
    async restart() {
      server = await start()
    },
    stop: () => server.stop(),
  }
}

/** How callers use a program that serves its runs with `routes.mjs`. */
export function routesOf({ url }: NodeProgram): Pick<AgentSystem, 'invoke' | 'approve' | 'state'> & {
  proceed(run: string): Promise<void>
} {
  const call = (action: string) => async (run: string) => void (await callJson('POST', `${url}/runs/${run}${action}`))
  return {
    invoke: call(''),
    approve: call('/approve'),
    proceed: call('/proceed'),
    state: async (run) => (await callJson('GET', `${url}/runs/${run}`)) as RunState,
  }
}

/**
 * Starts a program that serves its runs with `routes.mjs`, and a Postgres for it, reached over a unix socket: it is not
 * killed with the program, but stops with it.
 */
export async function startOnPostgres(
  options: Pick<NodeProgramOptions, 'packages' | 'files' | 'world'>,
): Promise<NodeProgram> {
  const postgres = await startEmbeddedPostgres({
    ...{ dataDir: await temporaryDirectory(), log: createLog('error'), connections: POSTGRES_CONNECTIONS },
  })
  const program = await startNodeProgram({
    ...options,
    ...{ port: await lastingPort(), readyPath: '/runs/none', env: { DATABASE_URL: postgres.url } },
  })
  return {
    ...program,
    async stop() {
      await program.stop()
      await postgres.stop()
    },
  }
}
