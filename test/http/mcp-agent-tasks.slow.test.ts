import { beforeAll, describe, expect, test } from 'bun:test'
import { resultFromTaskOutcome, withTasks } from '@modelcontextprotocol/ext-tasks/client'
import { eventually } from '../support/eventually.ts'
import { untilStatus } from '../support/hosted.ts'
import { callTurn } from '../support/hosted-rig.ts'
import { accept, type Mcp, mcpClient, startMcpRig, TASKS, taskPort } from '../support/mcp-agents.ts'

/** Calls of hosted agents that go on as tasks (docs/mcp.md#hosted-agents-as-tools). */

let rig: Awaited<ReturnType<typeof startMcpRig>>
let mcp: Mcp

beforeAll(async () => {
  rig = await startMcpRig()
  mcp = rig.mcp
})

describe('a longer call', () => {
  test('goes on as a task with the id of its run, which the client of the extension follows to its result', async () => {
    const answered = Promise.withResolvers<{ text: string }>()
    const { name } = await rig.toolOf(() => answered.promise)
    const session = withTasks(taskPort(mcp))
    const execution = await session.callTool(name, { input: 'x' })
    expect(execution.kind).toBe('task')
    const { data } = await rig.service.api('GET', `/api/v1/runs/${execution.handle!.taskId}`)
    expect(data.status).toBe('running')
    answered.resolve({ text: 'Done.' })
    const { outcome } = await execution.settle()
    expect(resultFromTaskOutcome(outcome)).toMatchObject({ content: [{ type: 'text', text: 'Done.' }] })
    await session.close()
  })

  test('asks for an approval with the exact arguments, and runs on those that the person has edited', async () => {
    const agent = await rig.payer()
    const forms: unknown[] = []
    const session = withTasks(taskPort(mcp), {
      onInputRequest: async (request) => {
        forms.push(request.params)
        return { action: 'accept', content: { confirm: true, comment: 'less', edited_input: '{"n":5}' } } as never
      },
    })
    const { outcome } = await (await session.callTool(agent.name, { input: 'x' })).settle()
    expect(resultFromTaskOutcome(outcome)).toMatchObject({ content: [{ text: 'Paid.' }] })
    expect(forms).toMatchObject([{ mode: 'form', message: expect.stringContaining('{"n":7}') }])
    expect(rig.tools.calls.findLast(({ tool }) => tool === 'pay')!.input).toEqual({ n: 5 })
    await session.close()
  })

  test('asks a question and goes on with the answer', async () => {
    const question = callTurn(['request_input', { question: 'Which city?', options: ['Lima', 'Bonn'] }])
    const { name, requests } = await rig.toolOf([question, { text: 'Sunny.' }], { allow_input_requests: true })
    const { result: task } = await mcp.call(name, { input: 'x' })
    expect(task).toMatchObject({ resultType: 'task', ttlMs: null })
    const { ids, forms } = await rig.untilAsked(task.taskId)
    expect(forms).toMatchObject([
      { params: { message: 'Which city?', requestedSchema: { properties: { answer: { enum: ['Lima', 'Bonn'] } } } } },
    ])
    expect((await mcp.update(task.taskId, { [ids[0]!]: accept({ answer: 'Lima' }) })).result).toMatchObject({
      resultType: 'complete',
    })
    expect(await rig.untilDone(task.taskId)).toMatchObject({
      status: 'completed',
      result: { content: [{ text: 'Sunny.' }] },
    })
    expect(requests().at(-1)!.body.messages.at(-1)!.content).toContain('Lima')
  })

  test('shows several requests at once; a response to one leaves the others', async () => {
    const agent = await rig.toolOf([callTurn(['pay', { n: 1 }], ['pay', { n: 2 }]), { text: 'Done.' }], {
      tools: [rig.tools.tool('pay', { requires_approval: true })],
    })
    const { result: task } = await mcp.call(agent.name, { input: 'x' })
    const { ids } = await rig.untilAsked(task.taskId)
    expect(ids).toHaveLength(2)
    await mcp.update(task.taskId, { [ids[0]!]: { action: 'decline' }, other: { ignored: true } })
    expect((await rig.untilAsked(task.taskId)).ids).toEqual([ids[1]!])
    await mcp.update(task.taskId, { [ids[1]!]: { action: 'cancel' } })
    expect((await rig.untilAsked(task.taskId)).ids).toEqual([ids[1]!])
    await mcp.update(task.taskId, { [ids[1]!]: accept({ confirm: true }) })
    expect((await rig.untilDone(task.taskId)).status).toBe('completed')
  })

  test('that waits in a child run asks for the approval of its call', async () => {
    const child = await rig.payer({ expose: [] })
    const ask = { type: 'agent', name: 'ask', description: 'Asks.', agent_id: child.agentId }
    const parent = await rig.toolOf([callTurn(['ask', { message: 'x' }]), { text: 'All done.' }], { tools: [ask] })
    const { result: task } = await mcp.call(parent.name, { input: 'x' })
    const { ids } = await rig.untilAsked(task.taskId)
    // Its own agent's key sees that it waits, but may not decide for the other agent.
    const own = mcpClient(rig.service, { key: parent.agentKey })
    expect((await own.task(task.taskId)).result).toMatchObject({ status: 'working' })
    expect((await own.update(task.taskId, { [ids[0]!]: accept({ confirm: true }) })).error.data.code).toBe('FORBIDDEN')
    await mcp.update(task.taskId, { [ids[0]!]: accept({ confirm: true }) })
    expect((await rig.untilDone(task.taskId)).result.content[0].text).toBe('All done.')
  })

  test('is cancelled by its client, which ends the run', async () => {
    const { name } = await rig.toolOf([{ hangs: true }])
    const { result: task } = await mcp.call(name, { input: 'x' })
    for (let times = 0; times < 2; times++)
      expect((await mcp.request('tasks/cancel', { taskId: task.taskId })).result).toMatchObject({
        resultType: 'complete',
      })
    expect((await mcp.task(task.taskId)).result).toMatchObject({ status: 'cancelled' })
    await untilStatus(rig.service, task.taskId, 'cancelled')
  })
})

describe('a decision', () => {
  test('by another door is final: a different one conflicts, the same one is acknowledged', async () => {
    const agent = await rig.payer()
    const own = mcpClient(rig.service, { key: agent.agentKey })
    const { result: task } = await own.call(agent.name, { input: 'x' })
    const { ids } = await rig.untilAsked(task.taskId, own)
    const approval = `/api/v1/approvals/${ids[0]}/approve`
    await rig.service.api('POST', approval, { comment: 'fine', background: true }, { key: agent.agentKey })
    for (const client of [own, mcp]) {
      const refused = await client.update(task.taskId, { [ids[0]!]: accept({ confirm: false }) })
      expect(refused.error).toMatchObject({
        data: { code: 'CONFLICT' },
        message: expect.stringContaining('already approved'),
      })
      const same = await client.update(task.taskId, { [ids[0]!]: accept({ confirm: true, comment: 'fine' }) })
      expect(same.result).toMatchObject({ resultType: 'complete' })
    }
    expect((await rig.untilDone(task.taskId)).result.content[0].text).toBe('Paid.')
  })

  test('that is none is refused, naming the place, and decides nothing', async () => {
    const agent = await rig.payer()
    const { result: task } = await mcp.call(agent.name, { input: 'x' })
    const { ids } = await rig.untilAsked(task.taskId)
    const at = `inputResponses.${ids[0]}`
    const refused: [unknown, string][] = [
      [7, `${at}: expected an object`],
      [{ action: 'yes' }, `${at}.action: expected one of`],
      [accept({}), `${at}.content.confirm: expected true`],
      [accept({ confirm: 'true' }), `${at}.content.confirm: expected true`],
      [accept({ confirm: true, edited_input: '{' }), `${at}.content.edited_input: expected a JSON object`],
      [accept({ confirm: true, edited_input: '[]' }), `${at}.content.edited_input: expected a JSON object`],
      [accept({ confirm: true, edited_input: '{"a":1,"a":2}' }), 'edited_input'],
      [accept({ confirm: true, comment: 'x'.repeat(10_001) }), `${at}.content.comment: expected`],
    ]
    for (const [response, message] of refused) {
      const { error } = await mcp.update(task.taskId, { [ids[0]!]: response })
      expect(error).toMatchObject({ code: -32_602, message: expect.stringContaining(message) })
    }
    expect((await mcp.update(task.taskId, [])).error.message).toContain('params.inputResponses: expected an object')
    expect((await rig.untilAsked(task.taskId)).ids).toEqual(ids)
    // The arguments as they were shown are no edit.
    await mcp.update(task.taskId, { [ids[0]!]: accept({ confirm: true, edited_input: '{"n":7}', comment: '' }) })
    const { data } = await rig.service.api('GET', `/api/v1/approvals/${ids[0]}`)
    expect(data).toMatchObject({ status: 'approved', edited_input: null, comment: null })
  })

  test('needs a client that can show a form; another one is told that the task waits', async () => {
    const agent = await rig.payer()
    const capabilities = { extensions: { [TASKS]: {} } }
    const { result: task } = await mcp.call(agent.name, { input: 'x' }, { capabilities })
    const waiting = await eventually(async () => {
      const { result } = await mcp.task(task.taskId, { capabilities })
      return result.statusMessage.startsWith('waits for an approval') && result
    })
    expect(waiting.status).toBe('working')
    expect(waiting.inputRequests).toBeUndefined()
  })
})

describe('access', () => {
  test('an agent key lists, calls and follows its own agent only', async () => {
    const [agent, other] = [await rig.payer(), await rig.toolOf([{ hangs: true }])]
    const own = mcpClient(rig.service, { key: agent.agentKey })
    const { result } = await own.request('tools/list')
    const listed = result.tools.map((tool: { name: string }) => tool.name)
    expect(listed.filter((name: string) => name.startsWith('tool_'))).toEqual([agent.name])
    expect((await own.call(other.name, { input: 'x' })).error.code).toBe(-32_602)
    const { result: task } = await mcp.call(other.name, { input: 'x' })
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel'])
      expect((await own.request(method, { taskId: task.taskId, inputResponses: {} })).error).toMatchObject({
        code: -32_602,
        message: `params.taskId: task does not exist: "${task.taskId}"`,
      })
    await mcp.request('tasks/cancel', { taskId: task.taskId })
  })

  test('a paused agent, one that is not exposed any more and an archived one are no tools', async () => {
    const agent = await rig.toolOf([{ text: 'x' }])
    const isThere = async () => (await mcp.call(agent.name, { input: 'x' })).error === undefined
    const edit = (body: object) => rig.service.api('PATCH', `/api/v1/agents/${agent.agentId}`, body)
    expect(await isThere()).toBe(true)
    for (const [off, on] of [
      [{ status: 'paused' }, { status: 'active' }],
      [{ expose: [] }, { expose: ['mcp'] }],
    ]) {
      await edit(off!)
      expect(await isThere()).toBe(false)
      await edit(on!)
      expect(await isThere()).toBe(true)
    }
    await rig.service.api('DELETE', `/api/v1/agents/${agent.agentId}`)
    expect(await isThere()).toBe(false)
  })

  test('a revoked key ends an open call within seconds; its run goes on', async () => {
    const answered = Promise.withResolvers<{ text: string }>()
    const { name, agentKey, agentId } = await rig.toolOf(() => answered.promise)
    const { data: keys } = await rig.service.api('GET', `/api/v1/keys?agent_id=${agentId}`)
    const calls = [{}, { progressToken: 'p' }].map((options) =>
      mcp.call(name, { input: 'x' }, { key: agentKey, capabilities: {}, ...options }),
    )
    const runs = async () => (await rig.service.api('GET', `/api/v1/runs?agent_id=${agentId}`)).data.items
    await eventually(async () => (await runs()).length === 2)
    await rig.service.api('POST', `/api/v1/keys/${keys.items[0].key_id}/revoke`, {})
    const revokedMs = performance.now()
    for (const { error } of await Promise.all(calls)) expect(error.data.code).toBe('UNAUTHENTICATED')
    expect(performance.now() - revokedMs).toBeLessThan(5_000)
    answered.resolve({ text: 'Late.' })
    for (const { run_id } of await runs()) await untilStatus(rig.service, run_id, 'completed')
  })
})
