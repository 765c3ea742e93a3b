import { beforeAll, expect, test } from 'bun:test'
import { NEXT as NEXT_STATUSES, RUN_STATUSES } from '../../src/activity/runs/state.ts'
import { createLog } from '../../src/base/log.ts'
import {
  CALL_STATUSES,
  HOSTED_PHASES,
  type HostedPhase,
  NEXT_PHASES,
  PAUSE_STATUSES,
  STATUSES_OF_PHASE,
} from '../../src/hosted/run/state.ts'
import { connectPostgres, type Sql } from '../../src/stores/postgres/connect.ts'
import { untilStatus } from '../support/hosted.ts'
import { callTurn, type HostedRig, startHostedRig } from '../support/hosted-rig.ts'

/** The state machines of `src/hosted/run/state.ts` match the database constraints and real runs. */

let rig: HostedRig
let sql: Sql

beforeAll(async () => {
  rig = await startHostedRig()
  sql = connectPostgres(rig.service.databaseUrl, { log: createLog('error'), max: 1 })
  return () => sql.end()
})

test('the database constraints list the same states', async () => {
  const rows = await sql<{ name: string; text: string }[]>`
    select conname as name, pg_get_constraintdef(oid) as text from pg_constraint where contype = 'c'`
  const statesOf = (name: string) => {
    const { text } = rows.find((row) => row.name === name)!
    return [...text.matchAll(/'(\w+)'::text/g)].map(([, state]) => state!)
  }
  expect(statesOf('hosted_runs_phase_check').sort()).toEqual([...HOSTED_PHASES].sort())
  expect(statesOf('tool_calls_status_check').sort()).toEqual([...CALL_STATUSES].sort())
  expect(statesOf('pauses_status_check').sort()).toEqual([...PAUSE_STATUSES].sort())
})

test('every status belongs to a phase, and every phase transition is a legal status transition', () => {
  expect(new Set(Object.values(STATUSES_OF_PHASE).flat())).toEqual(new Set(RUN_STATUSES))
  for (const from of HOSTED_PHASES) {
    for (const to of NEXT_PHASES[from]) {
      const isLegal = STATUSES_OF_PHASE[from].some((before) =>
        STATUSES_OF_PHASE[to].some((after) => before === after || NEXT_STATUSES[before].includes(after)),
      )
      expect([from, to, isLegal]).toEqual([from, to, true])
    }
  }
})

test('the phase of a run matches its status, and the database rejects illegal transitions', async () => {
  const { service, tools } = rig
  const settings = { tools: [tools.tool('pay', { requires_approval: true })] }
  const agent = await rig.agent(service, [callTurn(['pay', { n: 1 }]), { text: 'done' }], settings)
  const { run_id, awaiting_approval } = (await agent.invoke()).data
  expect(await phaseOf(run_id)).toBe('paused')
  await expectRejected('hosted_runs', 'phase', 'waiting')
  await expectRejected('tool_calls', 'status', 'started')
  await service.api('POST', `/api/v1/approvals/${awaiting_approval.approval_id}/approve`, {})
  await untilStatus(service, run_id, 'completed')
  expect(await phaseOf(run_id)).toBe('ended')
  await expectRejected('hosted_runs', 'phase', 'queued')
  await expectRejected('pauses', 'status', 'pending')
})

test('a decision continues its run in the same process, without a queue, where there is a slot', async () => {
  const { service, tools } = rig
  const settings = { tools: [tools.tool('pay', { requires_approval: true })] }
  const agent = await rig.agent(service, [callTurn(['pay', { n: 1 }]), { text: 'done' }], settings)
  const { run_id, awaiting_approval } = (await agent.invoke()).data
  await sql.unsafe(`
    create function refuse_queue() returns trigger language plpgsql as $$ begin raise 'queued'; end $$;
    create trigger no_queue before update on hosted_runs for each row
      when (new.run_id = '${run_id}' and new.phase = 'queued') execute function refuse_queue()`)
  const { data } = await service.api('POST', `/api/v1/approvals/${awaiting_approval.approval_id}/approve`, {})
  expect([data.status, data.output]).toEqual(['completed', { text: 'done' }])
  await sql`drop trigger no_queue on hosted_runs`
})

/** @returns the phase, after checking that it matches the status */
async function phaseOf(runId: string): Promise<HostedPhase> {
  const [row] = await sql<[{ phase: HostedPhase; status: (typeof RUN_STATUSES)[number] }]>`
    select h.phase, r.status from hosted_runs h join runs r using (workspace_id, run_id) where h.run_id = ${runId}`
  expect(STATUSES_OF_PHASE[row.phase]).toContain(row.status)
  return row.phase
}

async function expectRejected(table: string, column: string, to: string): Promise<void> {
  const attempt = async () => {
    await sql`update ${sql(table)} set ${sql(column)} = ${to}`
  }
  await expect(attempt()).rejects.toThrow(`illegal transition of ${table}`)
}
