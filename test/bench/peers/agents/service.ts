import packageJson from '../../../../package.json' with { type: 'json' }
import { mintToken } from '../../../../src/tenants/keys/token.ts'
import { freshDataDir } from '../../../support/stores.ts'
import { spawnForBench } from '../../servers.ts'
import { lastingPort } from '../process.ts'
import { type AgentPeer, callJson, PROMPT, type RunState, TOOL_NAMES, type World } from './agent-peer.ts'

const STATES: Readonly<Record<string, RunState>> = {
  completed: 'ended',
  failed: 'failed',
  awaiting_approval: 'waiting',
}

/** The service itself: a hosted agent with an approval, and embedded stores. */
export const service: AgentPeer = {
  name: 'service',
  async start(world) {
    const env = {
      OPENAI_BASE_URL: world.modelUrl,
      EGRESS_ALLOW: '127.0.0.1',
      PORT: `${await lastingPort()}`,
      DATA_DIR: await freshDataDir(),
      BOOTSTRAP_WORKSPACE_KEY: mintToken('workspace').text,
    }
    let spawned = await spawnForBench(env)
    const call = (method: string, path: string, body?: object, headers = {}) => {
      const authorization = { authorization: `Bearer ${env.BOOTSTRAP_WORKSPACE_KEY}` }
      return callJson(method, `http://127.0.0.1:${env.PORT}/api/v1${path}`, body, { ...authorization, ...headers })
    }
    const agentId = (await call('POST', '/agents', agentOf(world))).data.agent_id
    const known = new Map<string, { readonly runId: string; readonly approvalId?: string }>()
    const end = async (signal: NodeJS.Signals) => {
      spawned.kill(signal)
      await spawned.exited
    }
    return {
      title: `this service ${packageJson.version}`,
      configuration: 'hosted agent; embedded Postgres, a synced commit for each step',
      promise:
        'a stored step is not repeated; an HTTP tool call whose outcome is unknown is repeated with the same Idempotency-Key',
      async invoke(run) {
        const { data } = await call(
          'POST',
          `/agents/${agentId}/invoke`,
          { input: { message: run } },
          keyOf(`${run}-invoke`),
        )
        known.set(run, { runId: data.run_id, approvalId: data.awaiting_approval?.approval_id })
      },
      async approve(run) {
        await call('POST', `/approvals/${known.get(run)!.approvalId}/approve`, {}, keyOf(`${run}-approve`))
      },
      async state(run) {
        const runId = known.get(run)?.runId
        if (runId === undefined) return 'absent'
        const { data } = await call('GET', `/runs/${runId}`)
        if (data.pending !== null) known.set(run, { runId, approvalId: data.pending.id })
        return STATES[data.status] ?? 'running'
      },
      kill: () => end('SIGKILL'),
      async restart() {
        spawned = await spawnForBench(env)
      },
      stop: () => end('SIGTERM'),
    }
  },
}

/** A repeated call has no second effect. */
function keyOf(key: string): Record<string, string> {
  return { 'idempotency-key': key }
}

function agentOf({ toolsUrl }: World): object {
  const tools = TOOL_NAMES.map((name) => ({
    type: 'http',
    name,
    description: `${name}s an order`,
    method: 'POST',
    url: `${toolsUrl}${name}`,
    requires_approval: name === 'ship',
    parameters: { type: 'object', required: ['order'], properties: { order: { type: 'string' } } },
  }))
  return { name: 'orders', runtime_type: 'hosted', model: 'scripted', prompt: PROMPT, tools }
}
