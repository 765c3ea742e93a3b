import { join } from 'node:path'
import { npmPackages } from '../install.ts'
import { lastingPort } from '../process.ts'
import { type AgentPeer, callJson, type RunState } from './agent-peer.ts'
import { routesOf, startNodeProgram, startOnPostgres } from './node-program.ts'

const VERSIONS = {
  '@langchain/core': '1.4.0',
  '@langchain/langgraph': '1.7.3',
  '@langchain/langgraph-api': '2.0.0',
  '@langchain/langgraph-checkpoint': '1.2.2',
  '@langchain/langgraph-checkpoint-postgres': '1.0.5',
  '@langchain/langgraph-cli': '2.0.0',
  '@langchain/langgraph-sdk': '2.0.0',
  typescript: '5.9.3',
  zod: '4.6.7',
}
/** Its default of 10 would leave callers waiting. */
const WORKERS = 32
const STATES: Readonly<Record<string, RunState>> = { interrupted: 'waiting', error: 'failed' }

/** The server and the library require different versions of the SDK. */
function install(cache: string): Promise<string> {
  return npmPackages(cache, VERSIONS, { ignorePeers: true })
}

/** LangGraph's development server: the only one of its servers that runs without a licence. */
export const langgraphServer: AgentPeer = {
  name: 'langgraph-server',
  async start(world, cache) {
    const packages = await install(cache)
    const port = await lastingPort()
    const cli = join(packages, 'node_modules', '@langchain', 'langgraph-cli', 'dist', 'cli', 'cli.mjs')
    const program = await startNodeProgram({
      ...{ packages, world, port, readyPath: '/ok' },
      files: ['langgraph.mjs', 'steps.mjs', 'langgraph.json'],
      command: [cli, 'dev', '--no-browser', '--host', '127.0.0.1', '-p', `${port}`, '-n', `${WORKERS}`],
      env: { LANGGRAPH_CLI_NO_ANALYTICS: '1', LANGSMITH_TRACING: 'false', LOG_LEVEL: 'error' },
    })
    const thread = (run: string) => `${program.url}/threads/${run}`
    const wait = (run: string, body: object) =>
      callJson('POST', `${thread(run)}/runs/wait`, { assistant_id: 'agent', ...body })
    return {
      title: `LangGraph server (dev) ${VERSIONS['@langchain/langgraph-api']}`,
      configuration: 'state in memory, written to files 3 s after the last change: **not durable**; for development',
      promise: 'none for the development server; the licensed one stores in Postgres',
      async invoke(run) {
        await callJson('POST', `${program.url}/threads`, { thread_id: run, if_exists: 'do_nothing' })
        await wait(run, { input: { order: run } })
      },
      async approve(run) {
        await wait(run, { command: { resume: true } })
      },
      async state(run) {
        const found = await callJson('GET', thread(run))
        if (found === null) return 'absent'
        if (found.status !== 'idle') return STATES[found.status] ?? 'running'
        // Idle is also a thread whose run was lost.
        const { values, next } = await callJson('GET', `${thread(run)}/state`)
        if (values?.order === undefined) return 'absent'
        return next.length === 0 ? 'ended' : 'running'
      },
      async proceed(run) {
        await wait(run, { input: null })
      },
      kill: program.kill,
      restart: program.restart,
      stop: program.stop,
    }
  },
}

/** The library with its checkpoints in Postgres, behind the server of `routes.mjs`. */
export const langgraph: AgentPeer = {
  name: 'langgraph',
  async start(world, cache) {
    const packages = await install(cache)
    const program = await startOnPostgres({
      ...{ packages, world },
      files: ['langgraph-postgres.mjs', 'langgraph.mjs', 'routes.mjs', 'steps.mjs'],
    })
    return {
      ...routesOf(program),
      title: `LangGraph ${VERSIONS['@langchain/langgraph']} (library)`,
      configuration:
        "graph in one Node process; PostgresSaver on Postgres 18.4, durability 'sync': a checkpoint for each step",
      promise:
        'a thread continues from its last checkpoint once its caller invokes it again; an interrupted node runs again: make side effects idempotent',
      kill: program.kill,
      restart: program.restart,
      stop: program.stop,
    }
  },
}
