import type { Api } from './api.ts'

/** What `test/releases/record.ts` has stored with a release: the state of a small service, and what clients read of it. */
export interface Release {
  readonly workspaceKey: string
  readonly agentKey: string
  /** An ended run, a running one, and one of a hosted agent that waits for an answer. */
  readonly runs: { readonly ended: string; readonly live: string; readonly waiting: string }
  readonly requestId: string
  readonly lastSeq: number
  readonly answers: object
}

const QUERIES = [
  'SELECT * FROM runs ORDER BY created_at, run_id',
  'SELECT * FROM tasks ORDER BY created_at, task_id',
  'SELECT * FROM events ORDER BY run_id, seq',
]

/** Everything that clients can read of the recorded activity. */
export async function readRelease(api: Api, runs: Release['runs']): Promise<object> {
  const lists = ['agents', 'keys', 'queries', 'runs?include=input,output', 'input-requests', 'sessions'].map(
    (name) => `/api/v1/${name}`,
  )
  const ofRuns = Object.values(runs).flatMap((id) =>
    ['', '/events', '/tasks'].map((part) => `/api/v1/runs/${id}${part}`),
  )
  const answers: Record<string, unknown> = {}
  for (const path of [...lists, ...ofRuns]) answers[path] = (await api('GET', path)).data
  for (const query of QUERIES) answers[query] = (await api('POST', '/api/v1/query', { query })).data.rows
  // The feed of an ended run ends.
  const { text } = await api('GET', `/api/v1/runs/${runs.ended}/stream?after=0`)
  answers.feed = [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data))
  // Reading uses a key.
  return JSON.parse(JSON.stringify(answers, (name, value) => (name === 'last_used_at' ? undefined : value)))
}
