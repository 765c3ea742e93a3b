import type { Answer, Api, CallOptions } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import type { Random } from '../support/random.ts'
import type { Failures } from './campaign.ts'

interface Caller {
  readonly api: Api
  readonly agentId: string
  readonly agentKey: string
  readonly random: Random
  readonly failures: Failures
}

const CLIENTS = 4
/** An answer that has not come by then is given up. */
const PATIENCE_MS = 5_000
/** Some callers give up early, so that their repeat meets the first attempt. */
const IMPATIENT = 0.2
const DONE_MS = 120_000

/**
 * Clients that rely on what the service promises of single calls: that a repeat has no second effect, that a deleted run and
 * a revoked key are gone at once, that a run has one end. They repeat each call until they have an answer.
 */
export class Promises {
  private readonly named = new Map<string, string>()
  private readonly ended = new Map<string, ReadonlySet<string>>()
  private readonly deleted = new Map<string, string>()
  private readonly revoked: string[] = []
  private readonly scored = new Map<string, number>()
  private readonly clients: Promise<void>[]
  private isOver = false

  constructor(private readonly caller: Caller) {
    this.clients = Array.from({ length: CLIENTS }, () => this.work())
  }

  get figures() {
    const { named, ended, deleted, revoked, scored } = this
    return {
      'runs started by an Idempotency-Key': named.size,
      'runs ended by two at once': ended.size,
      'runs deleted': deleted.size,
      'keys revoked': revoked.length,
      'scores acknowledged': scored.size,
    }
  }

  async stop(): Promise<void> {
    this.isOver = true
    await Promise.all(this.clients)
  }

  /** Compares what is stored with what was acknowledged, once everything works. */
  async check(): Promise<void> {
    const { api, failures } = this.caller
    for (const [name, runId] of this.named) {
      const { data } = await api('GET', `/api/v1/runs?external_run_id=${name}`)
      const ids = data.items.map((run: { run_id: string }) => run.run_id)
      failures.expect(`runs of one Idempotency-Key`, ids.join(), runId)
    }
    for (const [runId, outcomes] of this.ended) {
      const { status } = (await api('GET', `/api/v1/runs/${runId}`)).data
      if (outcomes.size !== 1 || !outcomes.has(status))
        failures.add(`${runId} is ${status}, acknowledged as ${[...outcomes].join(' and ')}`)
    }
    for (const [runId, erasureId] of this.deleted) {
      const isDone = async () => (await api('GET', `/api/v1/erasures/${erasureId}`)).data.status === 'done'
      await eventually(isDone, { timeoutMs: DONE_MS, intervalMs: 200 }).catch((error: Error) =>
        failures.add(`the deletion of ${runId}: ${error.message}`),
      )
      failures.expect(`a deleted run`, (await api('GET', `/api/v1/runs/${runId}`)).status, 404)
    }
    const isKept = `select run_id from runs where run_id in {ids:Array(UUID)}`
    const { data } = await api('POST', '/api/v1/query', { query: isKept, params: { ids: [...this.deleted.keys()] } })
    failures.expect('deleted runs in SQL', data.rows.length, 0)
    for (const key of this.revoked)
      failures.expect('a revoked key', (await api('GET', '/api/v1/runs?limit=1', undefined, { key })).status, 401)
    const scores = await api('POST', '/api/v1/query', {
      query: "select run_id, value from scores where name = 'promise' limit 100000",
    })
    const values = new Map(scores.data.rows.map((row: { run_id: string; value: number }) => [row.run_id, row.value]))
    failures.expect('scores in SQL', scores.data.rows.length, this.scored.size)
    for (const [runId, value] of this.scored) failures.expect(`the score of ${runId}`, values.get(runId), value)
  }

  private async work(): Promise<void> {
    const acts = [
      () => this.startOnce(),
      () => this.endTwice(),
      () => this.delete(),
      () => this.revoke(),
      () => this.score(),
    ]
    while (!this.isOver)
      await this.caller.random
        .pick(acts)()
        .catch((error: Error) => this.caller.failures.add(error.message))
  }

  private async startOnce(): Promise<void> {
    const name = crypto.randomUUID()
    const body = { agent_id: this.caller.agentId, external_run_id: name }
    const { data } = await this.accepted(
      'POST',
      '/api/ingest/v1/run/start',
      body,
      this.agent({ 'idempotency-key': name }),
    )
    this.named.set(name, data.run_id)
  }

  private async endTwice(): Promise<void> {
    const run_id = await this.start()
    const outcome = async (path: string, body: object, status: string, options: CallOptions) => {
      const answer = await this.settled('POST', path, body, options)
      if (answer.status === 200) return [status]
      if (answer.status !== 409) this.caller.failures.add(`${path}: ${answer.status} ${answer.text}`)
      return []
    }
    const outcomes = await Promise.all([
      outcome('/api/ingest/v1/run/complete', { run_id }, 'completed', this.agent()),
      outcome(`/api/v1/runs/${run_id}/cancel`, {}, 'cancelled', {}),
    ])
    this.ended.set(run_id, new Set(outcomes.flat()))
  }

  private async delete(): Promise<void> {
    const run_id = await this.start()
    await this.accepted('POST', '/api/ingest/v1/run/complete', { run_id }, this.agent())
    const { data } = await this.accepted('DELETE', `/api/v1/runs/${run_id}`)
    this.deleted.set(run_id, data.erasure_id)
    const { status } = await this.settled('GET', `/api/v1/runs/${run_id}`)
    this.caller.failures.expect(`${run_id}, which was deleted,`, status, 404)
  }

  private async revoke(): Promise<void> {
    const { api, agentId, failures } = this.caller
    const { data } = await this.accepted('POST', `/api/v1/agents/${agentId}/keys`, {})
    await this.accepted('GET', '/api/v1/runs?limit=1', undefined, { key: data.key })
    await this.accepted('POST', `/api/v1/keys/${data.key_id}/revoke`, {})
    this.revoked.push(data.key)
    const { status } = await api('GET', '/api/v1/runs?limit=1', undefined, { key: data.key })
    if (status !== 401 && status !== 503) failures.add(`a key that was just revoked: ${status}`)
  }

  private async score(): Promise<void> {
    const run_id = await this.start()
    const value = this.caller.random.int(1, 1_000)
    const scores = [{ id: run_id, run_id, name: 'promise', value }]
    await this.accepted('POST', '/api/ingest/v1/scores', { scores }, this.agent())
    this.scored.set(run_id, value)
  }

  private async start(): Promise<string> {
    const run_id = crypto.randomUUID()
    await this.accepted('POST', '/api/ingest/v1/run/start', { agent_id: this.caller.agentId, run_id }, this.agent())
    return run_id
  }

  private agent(headers: Record<string, string> = {}): CallOptions {
    return { key: this.caller.agentKey, headers }
  }

  /** @throws Error unless the call succeeds */
  private async accepted(method: string, path: string, body?: unknown, options: CallOptions = {}): Promise<Answer> {
    const answer = await this.settled(method, path, body, options)
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`)
    return answer
  }

  /** The first answer that is not temporary. */
  private async settled(method: string, path: string, body?: unknown, options: CallOptions = {}): Promise<Answer> {
    const { api, random } = this.caller
    for (;;) {
      const ms = random.bool(IMPATIENT) ? random.int(1, 100) : PATIENCE_MS
      const signal = AbortSignal.timeout(ms)
      const answer = await api(method, path, body, { ...options, signal }).catch(() => undefined)
      if (answer !== undefined && answer.status !== 503 && !answer.headers.has('retry-after')) return answer
      await Bun.sleep(20)
    }
  }
}
