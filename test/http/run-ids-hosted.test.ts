import { beforeAll, expect, test } from 'bun:test'
import { eventually } from '../support/eventually.ts'
import { newTenant, type Tenant } from '../support/feeds.ts'
import { OutputReader, untilStatus } from '../support/hosted.ts'
import { type Backends, callTurn, eventsOf, startBackends } from '../support/hosted-rig.ts'
import { freshDatabase } from '../support/postgres.ts'
import { startTestService, type TestService } from '../support/service.ts'

/**
 * Hosted runs of two workspaces with the same run_ids. The service mints these ids, so the tests create the collision by
 * copying the rows of one workspace into another.
 */

let service: TestService
const { url: databaseUrl, sql } = await freshDatabase()
const backends: Backends = startBackends()

beforeAll(async () => {
  service = await startTestService({ ...backends.env, DATABASE_URL: databaseUrl, PAUSE_EXPIRES_SECONDS: '600' })
})

interface Twin extends Tenant {
  /** The approval the child waits for. */
  readonly approvalId: string
}

interface Twins {
  readonly twins: readonly [Twin, Twin]
  readonly parent: string
  readonly child: string
}

/** A parent run that waits for a child paused for approval, in two workspaces with the same run_ids. */
async function pausedTwins(): Promise<Twins> {
  const tenants = [await newTenant(service), await newTenant(service)] as const
  const turns = [callTurn(['pay', { n: 1 }]), { text: 'paid' }]
  const agents = await Promise.all(
    tenants.map(async (tenant) => {
      const tools = [backends.tools.tool('pay', { requires_approval: true })]
      const child = await backends.agent(tenant, turns, { name: 'child', tools })
      const ask = { type: 'agent', name: 'ask', description: 'a colleague', agent_id: child.agentId }
      const asking = [callTurn(['ask', { message: 'please' }]), { text: 'all done' }]
      return { child, parent: await backends.agent(tenant, asking, { name: 'parent', tools: [ask] }) }
    }),
  )
  const [ours, theirs] = agents
  const { data } = await ours!.parent.invoke()
  const [{ run_id: child }] = (await tenants[0].api('GET', `/api/v1/runs/${data.run_id}/children`)).data.items
  const copied = new Map([
    [tenants[0].workspaceId, tenants[1].workspaceId],
    [ours!.parent.agentId, theirs!.parent.agentId],
    [ours!.child.agentId, theirs!.child.agentId],
  ])
  await copyRuns(tenants[0].workspaceId, copied)
  const { approval_id: approvalId } = data.awaiting_approval
  const twins = [
    { ...tenants[0], approvalId },
    { ...tenants[1], approvalId: copied.get(approvalId)! },
  ] as const
  return { twins, parent: data.run_id, child }
}

/** Copies the runs of a workspace with their related rows. Internal ids are replaced with new ones, others according to `ids`. */
async function copyRuns(workspaceId: string, ids: Map<string, string>): Promise<void> {
  for (const { id } of await sql<{ id: string }[]>`
    select call_id as id from tool_calls where workspace_id = ${workspaceId}
    union all select pause_id from pauses where workspace_id = ${workspaceId}`)
    ids.set(id, crypto.randomUUID())
  for (const table of ['runs', 'hosted_runs', 'run_steps', 'tool_calls', 'pauses']) {
    const rows = await sql<{ row: string }[]>`
      select row_to_json(t)::text as row from ${sql(table)} t where workspace_id = ${workspaceId}`
    for (const { row } of rows) {
      const copy = [...ids].reduce((text, [from, to]) => text.replaceAll(from, to), row)
      await sql`
        insert into ${sql(table)} select (json_populate_record(null::${sql(table)}, (${copy}::text)::json)).*`
    }
  }
}

const statusOf = async ({ api }: Twin, runId: string) => (await api('GET', `/api/v1/runs/${runId}`)).data.status

async function expectWaiting(twin: Twin, { parent, child }: Twins): Promise<void> {
  for (const runId of [parent, child]) {
    const { data } = await twin.api('GET', `/api/v1/runs/${runId}`)
    expect(data).toMatchObject({ status: 'awaiting_approval', pending: { id: twin.approvalId, run_id: child } })
  }
  const { data } = await twin.api('GET', '/api/v1/approvals?status=pending')
  expect(data.items).toMatchObject([{ approval_id: twin.approvalId, run_id: child, root_run_id: parent }])
}

const approve = ({ api, approvalId }: Twin, body: object = {}) =>
  api('POST', `/api/v1/approvals/${approvalId}/approve`, body)

test('a decision resumes only the runs of its own workspace', async () => {
  const both = await pausedTwins()
  const { parent, child } = both
  const [ours, theirs] = both.twins
  await expectWaiting(theirs, both)
  expect((await approve(ours)).data).toMatchObject({ run_id: parent, output: { text: 'all done' } })
  expect([await statusOf(ours, parent), await statusOf(ours, child)]).toEqual(['completed', 'completed'])
  await expectWaiting(theirs, both)
  expect((await ours.api('POST', `/api/v1/approvals/${theirs.approvalId}/approve`, {})).error?.code).toBe('NOT_FOUND')
  expect((await approve(theirs)).data).toMatchObject({ run_id: parent, output: { text: 'all done' } })
  expect([await statusOf(theirs, parent), await statusOf(theirs, child)]).toEqual(['completed', 'completed'])
})

test('both run concurrently, each with its own output and events', async () => {
  const { twins, parent, child } = await pausedTwins()
  for (const twin of twins) {
    const untilPause = await OutputReader.ofRun(twin, parent)
    expect((await untilPause.all()).at(-1)!.data).toMatchObject({ approval_id: twin.approvalId })
  }
  const answers = await Promise.all(twins.map((twin) => approve(twin)))
  expect(answers.map(({ data }) => [data.run_id, data.output])).toEqual(twins.map(() => [parent, { text: 'all done' }]))
  for (const [n, twin] of twins.entries()) {
    const { data } = await twin.api('GET', `/api/v1/runs/${child}`)
    const types = (await eventsOf(twin, child, 'run.completed')).map(({ type }) => type)
    // The copy has no events from before the pause.
    const since = types.slice(types.indexOf('approval.decided'))
    expect(since.toSorted()).toEqual(
      ['approval.decided', 'tool.call.started', 'tool.call.finished', 'llm.call', 'run.completed'].toSorted(),
    )
    const { data: events } = await twin.api('GET', `/api/v1/runs/${child}/events?type=approval.decided`)
    expect(events.items.map(({ payload }: { payload: object }) => payload)).toMatchObject([
      { approval_id: twins[n]!.approvalId },
    ])
    expect(data.status).toBe('completed')
    const whole = await OutputReader.ofRun(twin, parent)
    expect((await whole.all()).map(({ event }) => event)).toEqual(['tool', 'tool', 'chunk', 'done'])
  }
})

test('a cancel and an expiry end only the runs of their own workspace', async () => {
  const cancelled = await pausedTwins()
  const [ours, theirs] = cancelled.twins
  expect((await ours.api('POST', `/api/v1/runs/${cancelled.parent}/cancel`, {})).data.status).toBe('cancelled')
  expect(await statusOf(ours, cancelled.child)).toBe('cancelled')
  await expectWaiting(theirs, cancelled)

  const expired = await pausedTwins()
  const [first, second] = expired.twins
  await sql`update pauses set expires_at = now() where workspace_id = ${first.workspaceId} and status = 'pending'`
  await untilStatus(first, expired.child, 'timed_out')
  await eventually(async () => (await statusOf(first, expired.parent)) === 'completed')
  await expectWaiting(second, expired)
  expect((await approve(second)).data.status).toBe('completed')
})
