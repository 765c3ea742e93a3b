import { npmPackages } from '../install.ts'
import { lastingPort } from '../process.ts'
import { type AgentPeer, callJson, type RunState } from './agent-peer.ts'
import { startNodeProgram } from './node-program.ts'

const VERSIONS = {
  '@hono/node-server': '2.1.8',
  '@mastra/core': '1.71.0',
  '@mastra/hono': '1.7.9',
  '@mastra/libsql': '1.23.1',
  hono: '4.13.19',
  zod: '4.6.7',
}
const STATES: Readonly<Record<string, RunState>> = {
  // Created, but never started: its caller starts it again.
  pending: 'absent',
  success: 'ended',
  suspended: 'waiting',
  failed: 'failed',
  canceled: 'failed',
}

export const mastra: AgentPeer = {
  name: 'mastra',
  async start(world, cache) {
    const packages = await npmPackages(cache, VERSIONS)
    const program = await startNodeProgram({
      ...{ packages, world, port: await lastingPort(), readyPath: '/api/workflows' },
      files: ['mastra.mjs', 'steps.mjs'],
      env: { MASTRA_OFFLINE: '1', MASTRA_TELEMETRY_DISABLED: '1' },
    })
    const workflow = `${program.url}/api/workflows/agent`
    return {
      title: `Mastra ${VERSIONS['@mastra/core']}`,
      configuration: 'workflow behind its server; LibSQL file (WAL, synchronous=NORMAL: not synced at each commit)',
      promise: 'runs are restarted from the last active step, which runs again: "make sure your tools are idempotent"',
      async invoke(run) {
        await callJson('POST', `${workflow}/create-run?runId=${run}`, {})
        await callJson('POST', `${workflow}/start-async?runId=${run}`, { inputData: { order: run } })
      },
      async approve(run) {
        await callJson('POST', `${workflow}/resume-async?runId=${run}`, {
          step: 'approval',
          resumeData: { approved: true },
        })
      },
      async state(run) {
        const found = await callJson('GET', `${workflow}/runs/${run}`)
        if (found === null) return 'absent'
        return STATES[found.status] ?? 'running'
      },
      kill: program.kill,
      restart: program.restart,
      stop: program.stop,
    }
  },
}
