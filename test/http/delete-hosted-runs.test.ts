import { beforeAll, expect, test } from 'bun:test'
import { createLog } from '../../src/base/log.ts'
import { connectPostgres } from '../../src/stores/postgres/connect.ts'
import { eventually } from '../support/eventually.ts'
import { OutputReader } from '../support/hosted.ts'
import { callTurn, startBackends } from '../support/hosted-rig.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { atEnd } from '../support/teardown.ts'

/** `DELETE /api/v1/runs/:run_id` of hosted runs that call each other. */

let service: TestService
const backends = startBackends(() => ({}))
beforeAll(async () => {
  service = await startTestService(backends.env)
})

const remove = (runId: string) => service.api('DELETE', `/api/v1/runs/${runId}`)
const approve = (id: string) => service.api('POST', `/api/v1/approvals/${id}/approve`, {})

/** A run that waits for an approval of its second child, and has the result of its first. */
async function pausedFamily() {
  const tools = [backends.tools.tool('pay', { requires_approval: true })]
  const quick = await backends.agent(service, [{ text: 'quick' }], { name: 'quick' })
  const slow = await backends.agent(service, [callTurn(['pay', { n: 1 }]), { text: 'paid' }], { name: 'slow', tools })
  const asTool = (agent_id: string, name: string) => ({ type: 'agent', name, description: 'a colleague', agent_id })
  const turns = [callTurn(['ask_quick', { message: '?' }], ['ask_slow', { message: '?' }]), { text: 'all done' }]
  const parent = await backends.agent(service, turns, {
    name: 'parent',
    tools: [asTool(quick.agentId, 'ask_quick'), asTool(slow.agentId, 'ask_slow')],
  })
  const { data } = await parent.invoke()
  const { items } = (await service.api('GET', `/api/v1/runs/${data.run_id}/children`)).data
  const runOf = ({ agentId }: { readonly agentId: string }) =>
    items.find((run: { agent_id: string }) => run.agent_id === agentId)
  return {
    parentId: data.run_id as string,
    approvalId: data.awaiting_approval.approval_id as string,
    quick: runOf(quick),
    slow: runOf(slow),
  }
}

test('a child run that has ended can be deleted once the run that called it has ended', async () => {
  const { parentId, approvalId, quick } = await pausedFamily()
  expect(quick.status).toBe('completed')
  const early = await remove(quick.run_id)
  expect(early).toMatchObject({ status: 409, error: { code: 'CONFLICT', reason: 'run_live' } })
  expect(early.error?.message).toContain('awaiting_approval')
  expect((await approve(approvalId)).data).toMatchObject({ run_id: parentId, status: 'completed' })
  expect((await remove(quick.run_id)).status).toBe(202)
  expect((await service.api('GET', `/api/v1/runs/${parentId}`)).data.status).toBe('completed')
})

test('what was decided for a child run is found after the run that called it was deleted', async () => {
  const { parentId, approvalId, slow } = await pausedFamily()
  await approve(approvalId)
  expect((await remove(parentId)).status).toBe(202)
  const approval = (await service.api('GET', `/api/v1/approvals/${approvalId}`)).data
  expect(approval).toMatchObject({ run_id: slow.run_id, root_run_id: parentId, status: 'approved' })
  const listed = (await service.api('GET', `/api/v1/approvals?run_id=${slow.run_id}`)).data.items
  expect(listed.map((each: { approval_id: string }) => each.approval_id)).toEqual([approvalId])
  expect(await approve(approvalId)).toMatchObject({ status: 409, error: { reason: 'already_decided' } })
  expect((await remove(slow.run_id)).status).toBe(202)
})

test('an output stream of a run that is deleted before its end was read does not stay open', async () => {
  const answered = Promise.withResolvers<void>()
  atEnd(async () => answered.resolve())
  const agent = await backends.agent(service, () => answered.promise.then(() => ({ text: 'late' })))
  const first = (await agent.invoke({ start_session: true, background: true })).data
  const { run_id } = (await agent.invoke({ session_id: first.session_id, background: true })).data
  const reader = await OutputReader.ofRun(service, run_id)
  const sql = connectPostgres(service.databaseUrl, { log: createLog('error'), max: 1 })
  atEnd(() => sql.end({ timeout: 1 }))
  await sql`delete from hosted_runs where run_id = ${run_id}`
  await sql`delete from runs where run_id = ${run_id}`
  await eventually(() => reader.ended !== undefined, { timeoutMs: 20_000 })
  expect(reader.ended).toBe('cut')
})
