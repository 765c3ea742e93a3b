import { createLog } from '../../src/base/log.ts'
import { connectPostgres } from '../../src/stores/postgres/connect.ts'
import { startEmbeddedPostgres } from '../../src/stores/postgres/embedded.ts'
import { migratePostgres } from '../../src/stores/postgres/migrate.ts'

/**
 * Baseline for run calls: one statement and commit per request, on its own Postgres with the settings and
 * tables of the service. No validation, no keys, no events. `argv`: data directory, connections. Prints its port.
 */
const [dataDir, connections] = Bun.argv.slice(2) as [string, string]
const log = createLog('error')
const postgres = await startEmbeddedPostgres({ dataDir, log })
await migratePostgres(postgres.url, log)
const sql = connectPostgres(postgres.url, { log, max: Number(connections) })
const [workspaceId, agentId] = [Bun.randomUUIDv7(), Bun.randomUUIDv7()]
await sql`insert into workspaces (workspace_id, name, created_at, updated_at) values (${workspaceId}, 'bench', now(), now())`
await sql`insert into agents (agent_id, workspace_id, name, runtime_type, metadata, created_at, updated_at)
  values (${agentId}, ${workspaceId}, 'bench', 'external', '{}', now(), now())`

interface Body {
  readonly run_id: string
  readonly trigger_type: string
  readonly input: object
  readonly output: object
  readonly external_run_id: string
  readonly tags: string[]
}

async function start({ trigger_type, input, external_run_id, tags }: Body) {
  const run_id = Bun.randomUUIDv7()
  await sql`
    insert into runs (run_id, workspace_id, agent_id, agent_version, runtime_type, status, trigger_type, external_run_id,
      tags, metadata, input, created_at, started_at)
    values (${run_id}, ${workspaceId}, ${agentId}, 1, 'external', 'running', ${trigger_type}, ${external_run_id},
      ${tags}, '{}', ${input}, now(), now())`
  return { run_id }
}

async function complete({ run_id, output }: Body) {
  const [row] = await sql`
    update runs set status = 'completed', output = ${output}, completed_at = now()
    where run_id = ${run_id} and status = 'running' returning completed_at`
  return { run_id, status: 'completed', completed_at: row!.completed_at, duration_ms: 0, already: false }
}

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    const body = (await request.json()) as Body
    return Response.json({ data: await (request.url.endsWith('/start') ? start(body) : complete(body)), error: null })
  },
})
process.on('SIGTERM', async () => {
  await server.stop(true)
  await sql.end({ timeout: 1 })
  await postgres.stop()
  process.exit(0)
})
process.stdout.write(`${server.port}\n`)
