import type { components } from '../../client/generated/api.ts'
import type { Client } from '../../client/index.ts'

type SavedQuery = Omit<components['schemas']['CreateSavedQuery'], 'params'>

const BOARD = 'Larkspur agents (demo)'
const WITHIN = 'created_at >= {from:DateTime64(3)} AND created_at < {to:DateTime64(3)}'
const RECEIVED = 'received_at >= {from:DateTime64(3)} AND received_at < {to:DateTime64(3)}'
const BUCKET = 'toStartOfInterval(created_at, toIntervalSecond({step:UInt32})) AS time'

/** The charts of the board; each is a saved query. */
const QUERIES: readonly SavedQuery[] = [
  {
    name: 'Demo: runs, failures and cost',
    description: 'The figures of the range at a glance.',
    query: `SELECT count() AS runs, countIf(status IN ('failed', 'timed_out')) AS failed,\n  uniqExact(external_user_id) AS users, round(sum(cost_usd), 2) AS cost_usd\nFROM runs\nWHERE ${WITHIN}`,
    chart: { kind: 'number' },
  },
  {
    name: 'Demo: runs by agent',
    description: 'Who is busy when.',
    query: `SELECT ${BUCKET}, agent_name, count() AS runs\nFROM runs\nWHERE ${WITHIN}\nGROUP BY time, agent_name\nORDER BY time`,
    chart: { kind: 'bar' },
  },
  {
    name: 'Demo: latency and cost',
    description: 'The slowest twentieth beside what it costs.',
    query: `SELECT ${BUCKET},\n  quantile(0.95)(active_ms) AS p95_ms, sum(cost_usd) AS cost_usd\nFROM runs\nWHERE ${WITHIN}\nGROUP BY time\nORDER BY time`,
    chart: { kind: 'line', y: ['p95_ms'], right: ['cost_usd'] },
  },
  {
    name: 'Demo: tokens by agent',
    description: 'Where the tokens go.',
    query: `SELECT ${BUCKET}, agent_name,\n  sum(input_tokens + output_tokens) AS tokens\nFROM runs\nWHERE ${WITHIN}\nGROUP BY time, agent_name\nORDER BY time`,
    chart: { kind: 'area' },
  },
  {
    name: 'Demo: scores',
    description: 'What a judge thinks of the answers, and the thumbs of users.',
    query: `SELECT ${BUCKET}, name, avg(value) AS mean\nFROM scores\nWHERE ${WITHIN} AND value IS NOT NULL\nGROUP BY time, name\nORDER BY time`,
    chart: { kind: 'line' },
  },
  {
    name: 'Demo: what goes wrong',
    description: 'The most frequent errors, with their agents.',
    query: `SELECT agent_name, error_message, count() AS runs, max(created_at) AS last\nFROM runs\nWHERE ${WITHIN} AND status = 'failed'\nGROUP BY agent_name, error_message\nORDER BY runs DESC\nLIMIT 20`,
    chart: null,
  },
  {
    name: 'Demo: failing tools',
    description: 'Calls of tools, and the share that fails.',
    query: `SELECT payload.gen_ai.tool.name::String AS tool, count() AS calls,\n  round(countIf(level = 'error') / count(), 3) AS failure_rate\nFROM events\nWHERE ${RECEIVED} AND type = 'tool.call.finished'\nGROUP BY tool\nHAVING tool != ''\nORDER BY failure_rate DESC, calls DESC\nLIMIT 20`,
    chart: null,
  },
]

/** Creates the saved queries and the board of the demo, unless they are there. */
export async function pinBoard(client: Client): Promise<void> {
  const { items: boards } = await client.request('GET', '/api/v1/boards', { query: { limit: 200 } })
  if (boards.some(({ name }) => name === BOARD)) return
  const { items: saved } = await client.request('GET', '/api/v1/queries', { query: { limit: 200 } })
  const charts: { query_id: string }[] = []
  for (const query of QUERIES) {
    const known = saved.find(({ name }) => name === query.name)
    const { query_id } = known ?? (await client.request('POST', '/api/v1/queries', { body: query }))
    charts.push({ query_id })
  }
  await client.request('POST', '/api/v1/boards', { body: { name: BOARD, charts } })
}
