import { join } from 'node:path'
import { ConversationReader } from '../../src/activity/runs/conversation/reader.ts'
import { RunCounts } from '../../src/activity/runs/counts.ts'
import { RunDirectory } from '../../src/activity/runs/directory.ts'
import { EventReader } from '../../src/activity/runs/events.ts'
import { runRoutes } from '../../src/activity/runs/routes.ts'
import { RunSearch } from '../../src/activity/runs/search/run-search.ts'
import { startStaleRuns } from '../../src/activity/runs/stale.ts'
import { startRunStatistics } from '../../src/activity/runs/statistics.ts'
import { RunStore } from '../../src/activity/runs/store.ts'
import { taskRoutes } from '../../src/activity/tasks/routes.ts'
import { TaskStore } from '../../src/activity/tasks/store.ts'
import { TelemetryTasks } from '../../src/activity/tasks/telemetry-tasks.ts'
import { createEnvelope } from '../../src/base/http/envelope.ts'
import { SharedSlice } from '../../src/base/http/shared-slice.ts'
import { mint } from '../../src/base/ids.ts'
import type { Limits } from '../../src/base/limits.ts'
import { openLocalJournal } from '../../src/stores/journal/local/journal.ts'
import { startOutboxRelay } from '../../src/stores/journal/outbox-relay.ts'
import { RelayedRows } from '../../src/stores/journal/outbox-rows.ts'
import { unavailableOf } from '../../src/stores/postgres/connect.ts'
import { insertKey } from '../../src/tenants/keys/store.ts'
import { mintToken } from '../../src/tenants/keys/token.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'
import { LIMITS } from '../support/events.ts'
import { partitionWith } from '../support/partitions.ts'
import { freshDatabase } from '../support/postgres.ts'
import { startSink } from '../support/sink.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'
import { type CallOptions, callAt, openGuards } from './auth-app.ts'

/** The routes of runs and tasks as the service has them, on a real port with a real Postgres, journal and ClickHouse. */
export async function runsApp(limits: Partial<Limits> = {}) {
  const { url } = await freshDatabase()
  const { client } = await freshColumnarDatabase()
  const allLimits = { ...LIMITS, ...limits }
  const { log, sql, clock, guards, close } = await openGuards(url, allLimits, {}, 6)
  const dir = await temporaryDirectory()
  const journal = await openLocalJournal({ dir: join(dir, 'journal'), maxBytes: 1 << 30, keepBytes: 0, clock, log })
  const sink = await startSink({ journal, client, dir, log, intervalMs: 10 })
  const relay = startOutboxRelay({ rows: new RelayedRows(sql), journal, log })
  // Updates only on flush, so that tests detect a missing flush.
  const statistics = await startRunStatistics({ counts: new RunCounts(sql), journal, log, intervalMs: 3_600_000 })
  // Tests run the sweep themselves.
  const partitions = partitionWith({ journal, sink, relay, statistics })
  const stale = startStaleRuns({ sql, partitions, clock, log, onChange: relay.wake, intervalMs: 3_600_000 })
  const directory = new RunDirectory(sql)
  const stores = { sql, clock, limits: allLimits, directory, cancelHosted: async () => false, onChange: relay.wake }
  const runs = new RunStore(stores)
  const slice = new SharedSlice()
  const search = new RunSearch({ columnar: client, partitions, runs, slice })
  const conversations = new ConversationReader({ columnar: client, partitions, runs, slice })
  const telemetry = new TelemetryTasks({ columnar: client, partitions })
  const tasks = new TaskStore({ ...stores, telemetry })
  const app = createEnvelope({ log, limits: allLimits, unavailableOf })
    .use(runRoutes({ guards, runs, events: new EventReader({ columnar: client, partitions }), conversations, search }))
    .use(taskRoutes({ guards, tasks }))
    .listen({ port: 0, hostname: '127.0.0.1' })
  const base = `http://127.0.0.1:${app.server!.port}`
  atEnd(async () => {
    await app.stop(true)
    await Promise.all([stale.stop(), statistics.stop(), relay.stop(), sink.stop(1_000)])
    await journal.close()
    await close()
  })

  const call = (method: string, path: string, given?: CallOptions) => callAt(base, method, path, given)

  async function newKey(workspaceId: string, agentId: string | null): Promise<string> {
    const token = mintToken(agentId === null ? 'workspace' : 'agent')
    await insertKey(sql, token, {
      key_id: mint.uuid(),
      workspace_id: workspaceId,
      agent_id: agentId,
      name: null,
      created_at: new Date(),
      expires_at: null,
    })
    return token.text
  }

  async function newWorkspace(): Promise<{ workspaceId: string; key: string }> {
    const workspaceId = mint.uuid()
    await sql`
      insert into workspaces (workspace_id, name, created_at, updated_at) values (${workspaceId}, 'w', now(), now())`
    return { workspaceId, key: await newKey(workspaceId, null) }
  }

  async function newAgent(workspaceId: string, options: { hosted?: boolean; staleAfterSeconds?: number } = {}) {
    const agentId = mint.uuid()
    await sql`
      insert into agents (agent_id, workspace_id, name, runtime_type, stale_after_seconds, metadata, created_at, updated_at)
      values (${agentId}, ${workspaceId}, 'an agent', ${options.hosted === true ? 'hosted' : 'external'},
        ${options.staleAfterSeconds ?? null}, '{}', now(), now())`
    return { agentId, key: await newKey(workspaceId, agentId) }
  }

  const workspace = await newWorkspace()
  const agent = await newAgent(workspace.workspaceId)

  return {
    sql,
    clock,
    log,
    runs,
    partitions,
    journal,
    client,
    sink,
    relay,
    stale,
    workspace,
    agent,
    call,
    newWorkspace,
    newAgent,
    /** `POST` to the ingest API with the first agent's key. */
    ingest: (path: string, body: unknown, key = agent.key) => call('POST', `/api/ingest/v1/${path}`, { key, body }),
    /** `GET` from the API with the workspace's key. */
    read: (path: string, key = workspace.key) => call('GET', `/api/v1/${path}`, { key }),
    async start(body: object = {}, as = agent): Promise<string> {
      const answer = await call('POST', '/api/ingest/v1/run/start', {
        key: as.key,
        body: { agent_id: as.agentId, ...body },
      })
      if (answer.status !== 200) throw new Error(answer.text)
      return answer.data.run_id
    },
  }
}

export type RunsApp = Awaited<ReturnType<typeof runsApp>>
