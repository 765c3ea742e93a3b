import { expect } from 'bun:test'
import { type Answer, type Api, createApi } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import type { Random } from '../support/random.ts'
import { rowsInSql } from '../support/service.ts'

export interface ReportingOptions {
  /** Of several nodes, each call goes to another one. */
  readonly url: string | readonly string[]
  readonly agentId: string
  readonly agentKey: string
  readonly random: Random
  readonly clients: number
}

/** Clients that report runs continuously and repeat each call until it succeeds; records what was acknowledged. */
export class Reporting {
  readonly runs = new Map<string, 'completed' | 'failed' | 'running'>()
  /** Number of events by run. */
  readonly events = new Map<string, number>()
  /** What each call with events was answered, by run: to find out where a lost one went. */
  readonly answers = new Map<string, string[]>()
  tasks = 0
  calls = 0
  /** Calls that were sent again. */
  retries = 0
  private isOver = false
  private readonly working: Promise<unknown>
  private readonly apis: readonly Api[]

  constructor(private readonly options: ReportingOptions) {
    this.apis = [options.url].flat().map((url) => createApi(url, options.agentKey))
    this.working = Promise.all(Array.from({ length: options.clients }, () => this.work()))
  }

  get eventCount(): number {
    return [...this.events.values()].reduce((sum, count) => sum + count, 0)
  }

  /** Resolves once every client has finished its run. */
  async stop(): Promise<void> {
    this.isOver = true
    await this.working
  }

  private async work(): Promise<void> {
    const { agentId: agent_id, random } = this.options
    while (!this.isOver) {
      const run_id = Bun.randomUUIDv7()
      await this.call('run/start', { agent_id, run_id, input: { by: 'clients' } })
      this.runs.set(run_id, 'running')
      await this.reportEvents(run_id)
      const task = { id: Bun.randomUUIDv7(), name: 'step' }
      await this.call('tasks', { run_id, task: { ...task, status: 'running' } })
      await this.call('tasks', { run_id, task: { ...task, status: 'completed' } })
      this.tasks++
      const failed = random.bool()
      await this.call(failed ? 'run/fail' : 'run/complete', failed ? { run_id, error_message: 'no' } : { run_id })
      this.runs.set(run_id, failed ? 'failed' : 'completed')
    }
  }

  private async reportEvents(run_id: string): Promise<void> {
    const { random } = this.options
    let sent = 0
    for (let batch = random.int(1, 4); batch > 0; batch--) {
      const count = random.int(1, 20)
      // Half of the batches set event ids, the other half rely on the Idempotency-Key alone.
      const named = random.bool()
      const first = sent
      const events = Array.from({ length: count }, (_, i) => ({
        ...(named && { id: `${first + i}` }),
        type: isModelCall(first + i) ? 'llm.call' : 'step',
        payload: { n: first + i, 'gen_ai.usage.input_tokens': first + i, cost_usd: COST_USD },
      }))
      const answered = await this.call(
        'events',
        { run_id, events },
        named ? {} : { 'idempotency-key': `${run_id} ${sent}` },
      )
      this.answers.set(run_id, [...(this.answers.get(run_id) ?? []), `${named ? 'ids' : 'key'} ${answered}`])
      sent += count
      this.events.set(run_id, sent)
    }
  }

  private async call(path: string, body: unknown, headers: Record<string, string> = {}): Promise<string> {
    for (let attempt = 1; ; attempt++) {
      const node = ++this.calls % this.apis.length
      const options = { headers, signal: AbortSignal.timeout(5_000) }
      const answer = await this.apis[node]('POST', `/api/ingest/v1/${path}`, body, options).catch(() => undefined)
      if (answer?.status === 200) return `attempt ${attempt} at node ${node}: ${JSON.stringify(answer.data)}`
      const retryable = answer === undefined || answer.status === 503 || answer.headers.has('retry-after')
      if (!retryable) throw new Error(`${path}: ${answer.status} ${answer.text}`)
      this.retries++
      await Bun.sleep(20)
    }
  }
}

/** Every third event is a model call, which used as many tokens as its number. */
function isModelCall(n: number): boolean {
  return n % 3 === 0
}

/** A sum of these is exact in binary. */
const COST_USD = 0.25

/** What a run of so many events has used. */
function usageOf(events: number): { readonly tokens: number; readonly cost: number } {
  const calls = Array.from({ length: events }, (_, n) => n).filter(isModelCall)
  return { tokens: calls.reduce((sum, n) => sum + n, 0), cost: calls.length * COST_USD }
}

/**
 * Compares SQL and Postgres exactly with what was acknowledged.
 * @param api with the workspace key, of a service that answers queries again
 */
export async function expectAcknowledged(
  api: Api,
  agentId: string,
  { runs, events, answers, tasks, eventCount }: Reporting,
): Promise<void> {
  expect(eventCount).toBeGreaterThan(0)
  const sql = (query: string) => rowsInSql(api, query, { params: { agent: agentId } })
  const ofAgent = 'agent_id = {agent:UUID}'
  await eventually(
    async () =>
      (await sql(`select count() as n from runs where ${ofAgent} and status != 'running'`))[0].n === runs.size,
  )
  const byRun = (await sql(`
    select r.run_id as run_id, r.status as status, e.n as n
    from runs r left join (select run_id, count() as n from events where ${ofAgent} group by run_id) e using run_id
    where r.agent_id = {agent:UUID} order by run_id limit 10000`)) as { run_id: string; status: string; n: number }[]
  // Immediately: a run that is reported as ended has all its events.
  if (runs.size <= 10_000) {
    expect(Object.fromEntries(byRun.map(({ run_id, status }) => [run_id, status]))).toEqual(Object.fromEntries(runs))
    const wrong = byRun.filter(({ run_id, n }) => n !== (events.get(run_id) ?? 0))
    expect(wrong.map((run) => ({ ...run, answers: answers.get(run.run_id) }))).toEqual([])
    expect(Object.fromEntries(byRun.map(({ run_id, n }) => [run_id, n]))).toEqual(Object.fromEntries(events))
  }
  expect((await sql(`select count() as n from events where ${ofAgent}`))[0].n).toBe(eventCount)
  expect((await sql(`select count() as n from tasks where ${ofAgent} and status = 'completed'`))[0].n).toBe(tasks)
  await eventually(() => countedEvents(api, agentId).then((counted) => counted === eventCount), { intervalMs: 200 })
  const usages = [...events.values()].map(usageOf)
  const expected = {
    tokens: usages.reduce((sum, { tokens }) => sum + tokens, 0),
    cost: usages.reduce((sum, { cost }) => sum + cost, 0),
  }
  const { tokens, cost } = await countedUsage(api, agentId)
  expect({ tokens, cost }).toEqual(expected)
  // Rows with the final sums follow the ends of the runs.
  const sums = `select sum(input_tokens) as tokens, sum(cost_usd) as cost from runs where ${ofAgent}`
  await eventually(async () => {
    const [row] = await sql(sums)
    return row.tokens === expected.tokens && row.cost === expected.cost
  })
  if (runs.size > 10_000) return
  const inSql = await sql(`select run_id, input_tokens, cost_usd from runs where ${ofAgent} limit 10000`)
  const byRunId = inSql.map((row: Record<string, unknown>) => [row.run_id, [row.input_tokens, row.cost_usd]])
  const wanted = [...events].map(([runId, count]) => [runId, [usageOf(count).tokens, usageOf(count).cost]])
  expect(Object.fromEntries(byRunId)).toEqual(Object.fromEntries(wanted))
}

/** The sum of `event_count` of the agent's runs. */
async function countedEvents(api: Api, agentId: string): Promise<number> {
  return (await countedUsage(api, agentId)).events
}

async function countedUsage(api: Api, agentId: string) {
  const counted = { events: 0, tokens: 0, cost: 0 }
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { data }: Answer = await api(
      'GET',
      `/api/v1/runs?agent_id=${agentId}&limit=200${cursor && `&cursor=${cursor}`}`,
    )
    for (const run of data.items) {
      counted.events += run.event_count
      counted.tokens += run.usage.input_tokens
      counted.cost += run.cost_usd
    }
    cursor = data.next_cursor
  }
  return counted
}
