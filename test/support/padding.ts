import { expect } from 'bun:test'
import { type Api, newAgent } from './api.ts'
import { OPERATOR_TOKEN } from './service.ts'

const EVENTS = '/api/ingest/v1/events'

/** Another workspace that reports enough to push everything earlier out of memory and into a closed journal file. */
export class Padding {
  private constructor(
    private readonly key: string,
    private readonly runId: string,
  ) {}

  static async of(api: Api): Promise<Padding> {
    const { data } = await api('POST', '/api/v1/workspaces', { name: 'padding' }, { key: OPERATOR_TOKEN })
    const { agentId, agentKey } = await newAgent((method, path, body) => api(method, path, body, { key: data.key }))
    const runId = Bun.randomUUIDv7()
    await api('POST', '/api/ingest/v1/run/start', { agent_id: agentId, run_id: runId }, { key: agentKey })
    return new Padding(agentKey, runId)
  }

  async push(api: Api): Promise<void> {
    const events = new Array(18).fill({ type: 'padding', payload: { text: 'x'.repeat(500_000) } })
    const body = JSON.stringify({ run_id: this.runId, events })
    for (let i = 0; i < 6; i++) expect((await api('POST', EVENTS, body, { key: this.key })).status).toBe(200)
    const sql = { query: 'select 1 from events limit 1' }
    expect((await api('POST', '/api/v1/query', sql)).status).toBe(200)
  }
}
