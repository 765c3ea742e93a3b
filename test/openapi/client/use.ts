import createClient from 'openapi-fetch'
import type { components, paths } from './api.d.ts'

/**
 * A client generated from the document, as a user would write it: `client.test.ts` generates `api.d.ts`, compiles this file
 * under `strict` and runs it. Prints the values it has read.
 */

const { SERVICE_URL: baseUrl = '', WORKSPACE_KEY: workspaceKey = '' } = process.env
const as = (key: string) => createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${key}` } })
const owner = as(workspaceKey)

/** Narrows a response to its data. */
function must<T>({ data, error }: { data?: { data: T }; error?: { error: { message: string } } }): T {
  if (data === undefined) throw new Error(error?.error.message ?? 'no answer')
  return data.data
}

const { agent_id } = must(await owner.POST('/api/v1/agents', { body: { name: 'generated' } }))
const { key } = must(await owner.POST('/api/v1/agents/{agent_id}/keys', { params: { path: { agent_id } }, body: {} }))
const agent = as(key)
const { run_id } = must(
  await agent.POST('/api/ingest/v1/run/start', {
    body: { agent_id, input: { question: 'Why?' }, trigger_type: 'manual' },
    params: { header: { 'Idempotency-Key': 'once' } },
  }),
)
const accepted = must(
  await agent.POST('/api/ingest/v1/events', {
    body: {
      run_id,
      events: [
        { type: 'step', level: 'warn', payload: { n: 1 } },
        { type: 'step', level: 'info' },
      ],
    },
  }),
)
const stored: number = accepted.accepted
const path = { run_id }
must(await agent.POST('/api/ingest/v1/run/complete', { body: { run_id, output: { answer: 42 } } }))
const run: components['schemas']['Run'] = must(await owner.GET('/api/v1/runs/{run_id}', { params: { path } }))
const steps: readonly string[] = must(
  await owner.GET('/api/v1/runs/{run_id}/events', {
    params: { path, query: { after_seq: 0, limit: 10, level: 'info' } },
  }),
).items.map((event) => event.level)

const missing = await owner.GET('/api/v1/runs/{run_id}', { params: { path: { run_id: agent_id } } })
const code: components['schemas']['Error']['error']['code'] | undefined = missing.error?.error.code

process.stdout.write(JSON.stringify({ stored, status: run.status, duration: typeof run.duration_ms, steps, code }))
