import { join } from 'node:path'
import { temporaryDirectory } from '../../../support/teardown.ts'
import { npmPackages } from '../install.ts'
import { answers, lastingPort, startPeerProcess } from '../process.ts'
import { type AgentPeer, callJson, type RunState } from './agent-peer.ts'
import { startNodeProgram } from './node-program.ts'

const VERSIONS = { '@restatedev/restate-server': '1.7.12', '@restatedev/restate-sdk': '1.17.2' }

/** Restate's server and a service that it calls; both are killed. */
export const restate: AgentPeer = {
  name: 'restate',
  async start(world, cache) {
    const packages = await npmPackages(cache, VERSIONS)
    const [port, ingressPort] = [await lastingPort(), await lastingPort()]
    const [adminPort, nodePort] = [await lastingPort(), await lastingPort()]
    const program = await startNodeProgram({
      // It speaks HTTP/2 only.
      ...{ packages, world, port },
      files: ['restate.mjs', 'steps.mjs'],
    })
    const cwd = await temporaryDirectory()
    const platform = `restate-server-${process.platform}-${process.arch}`
    const binary = join(packages, 'node_modules', '@restatedev', platform, 'bin', 'restate-server')
    const [ingress, admin] = [`http://127.0.0.1:${ingressPort}`, `http://127.0.0.1:${adminPort}`]
    const env = {
      RESTATE_BASE_DIR: cwd,
      RESTATE_NODE_NAME: 'bench',
      RESTATE_DISABLE_TELEMETRY: 'true',
      RESTATE_LISTEN_MODE: 'tcp',
      RESTATE_BIND_IP: '127.0.0.1',
      RESTATE_BIND_PORT: `${nodePort}`,
      RESTATE_INGRESS__BIND_PORT: `${ingressPort}`,
      RESTATE_ADMIN__BIND_PORT: `${adminPort}`,
      RESTATE_LOG_FILTER: 'error',
    }
    const isReady = async () => (await answers(`${ingress}/restate/health`)) && answers(`${admin}/health`)
    const start = () => startPeerProcess([binary], { cwd, env, isReady })
    let server = await start()
    await callJson('POST', `${admin}/deployments`, { uri: program.url })
    const path = (run: string, handler: string) => `${ingress}/agent/${run}/${handler}`
    return {
      title: `Restate ${VERSIONS['@restatedev/restate-server']}`,
      configuration: 'workflow in one Node process, one server with its defaults: each step in a log that is synced',
      promise:
        'a journalled step is not repeated; an interrupted side effect is: at least once, make it idempotent with a stable key',
      async invoke(run) {
        await callJson('POST', path(run, 'run/send'))
        await callJson('POST', path(run, 'waiting'))
      },
      async approve(run) {
        await callJson('POST', path(run, 'approve'))
        await callJson('GET', `${ingress}/restate/workflow/agent/${run}/attach`)
      },
      async state(run) {
        const response = await fetch(`${ingress}/restate/workflow/agent/${run}/output`)
        const known: Record<number, RunState> = { 200: 'ended', 404: 'absent' }
        if (response.status !== 470) return known[response.status] ?? 'failed'
        return (await callJson('POST', path(run, 'isWaiting'))) === true ? 'waiting' : 'running'
      },
      async kill() {
        await Promise.all([server.kill(), program.kill()])
      },
      async restart() {
        await program.restart()
        server = await start()
      },
      async stop() {
        await server.stop()
        await program.stop()
      },
    }
  },
}
