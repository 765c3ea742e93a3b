import { beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '../support/eventually.ts'
import { newTenant } from '../support/feeds.ts'
import { accept, type Mcp, mcpClient, startMcpRig, TASKS } from '../support/mcp-agents.ts'

/** Hosted agents as tools of the MCP server (docs/mcp.md#hosted-agents-as-tools). */

let rig: Awaited<ReturnType<typeof startMcpRig>>
let mcp: Mcp
/** Gets no tasks, however slow the machine is. */
let plain: Mcp

beforeAll(async () => {
  rig = await startMcpRig()
  mcp = rig.mcp
  plain = mcpClient(rig.service, { capabilities: {} })
})

describe('a call', () => {
  test('is answered with the text of the agent', async () => {
    const { name, requests } = await rig.toolOf([{ text: 'Sunny.' }])
    const { result } = await plain.call(name, { input: 'Weather?' })
    expect(result).toMatchObject({ resultType: 'complete', content: [{ type: 'text', text: 'Sunny.' }] })
    expect(result.structuredContent).toBeUndefined()
    expect(requests()[0]!.body.messages.at(-1)).toMatchObject({ role: 'user', content: 'Weather?' })
  })

  test('takes arguments as its input_schema says, and returns what its output_schema says, numbers exact', async () => {
    const input_schema = { properties: { city: { type: 'string' } }, required: ['city'] }
    const output_schema = { type: 'object', properties: { people: { type: 'integer' } }, required: ['people'] }
    const { name } = await rig.toolOf([{ text: '{"people":9007199254740991}' }], { input_schema, output_schema })
    const { result } = await plain.call(name, { city: 'Lima' })
    expect(result.structuredContent).toEqual({ people: 9_007_199_254_740_991 })
    expect((await plain.call(name, {})).result).toMatchObject({
      isError: true,
      content: [{ text: "VALIDATION_ERROR: input: must have required property 'city'" }],
    })
  })

  test('fills placeholders of the prompt, and names an argument that is missing or unknown', async () => {
    const { name, requests } = await rig.toolOf([{ text: 'Hi.' }], { prompt: 'You are {{ROLE}}.' })
    await plain.call(name, { input: 'x', ROLE: 'a clerk' })
    expect(requests()[0]!.body.messages[0]!.content).toBe('You are a clerk.')
    const problem = async (args: object) => (await plain.call(name, args)).result.content[0].text
    expect(await problem({ ROLE: 'x' })).toContain('arguments.input: required')
    expect(await problem({ input: 'x' })).toContain('prompt_variables.ROLE: required')
    expect(await problem({ input: 'x', ROLE: 'x', role: 'y' })).toContain('arguments."role": unknown argument')
    expect(await problem({ input: 7, ROLE: 'x' })).toContain('expected a string; got 7')
  })

  test('is an error that names the reason if the run fails', async () => {
    const { name } = await rig.toolOf([{ status: 400 }])
    const { result } = await plain.call(name, { input: 'x' })
    expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('ended as failed') }] })
  })
})

describe('a client without the extension', () => {
  const formsOnly = { capabilities: { elicitation: {} } }

  test('is asked in the answer to its call, and repeats that with the decision', async () => {
    const agent = await rig.payer()
    const { result: asked } = await mcp.call(agent.name, { input: 'x' }, formsOnly)
    expect(asked.resultType).toBe('input_required')
    const inputResponses = { [Object.keys(asked.inputRequests)[0]!]: accept({ confirm: true }) }
    const params = { name: agent.name, arguments: { input: 'x' }, inputResponses }
    const { result } = await mcp.request('tools/call', params, formsOnly)
    expect(result).toMatchObject({ resultType: 'complete', content: [{ text: 'Paid.' }] })
    const { data } = await rig.service.api('GET', `/api/v1/runs?agent_id=${agent.agentId}`)
    expect(data.items).toHaveLength(1)
    const other = await rig.toolOf([{}])
    const wrong = await mcp.request('tools/call', { ...params, name: other.name }, formsOnly)
    expect(wrong.result).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('inputResponses') }],
    })
  })

  test('that shows no forms gets progress until someone else has decided', async () => {
    const agent = await rig.payer()
    const call = mcp.call(agent.name, { input: 'x' }, { capabilities: {}, progressToken: 'p' })
    const pending = await eventually(async () => {
      const { data } = await rig.service.api('GET', `/api/v1/approvals?status=pending&agent_id=${agent.agentId}`)
      return data.items[0] ?? false
    })
    await rig.service.api('POST', `/api/v1/approvals/${pending.approval_id}/approve`, { background: true })
    const { result, notifications } = await call
    expect(result).toMatchObject({ resultType: 'complete', content: [{ text: 'Paid.' }] })
    for (const { method, params } of notifications) {
      expect(method).toBe('notifications/progress')
      expect(params).toMatchObject({ progressToken: 'p', progress: expect.any(Number), message: expect.any(String) })
    }
  })

  test('cannot use the methods of tasks, and the error names what is missing', async () => {
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel'])
      expect(
        (await mcp.request(method, { taskId: 'x', inputResponses: {} }, { capabilities: {} })).error,
      ).toMatchObject({
        code: -32_021,
        data: { requiredCapabilities: { extensions: { [TASKS]: {} } } },
      })
  })
})

test('a task of another workspace, a run that is no task, and text that is no id do not exist', async () => {
  const tenant = await newTenant(rig.service)
  const outsider = mcpClient({ url: rig.service.url, workspaceKey: tenant.workspaceKey })
  const agent = await rig.payer()
  const { result: task } = await mcp.call(agent.name, { input: 'x' })
  const { ids } = await rig.untilAsked(task.taskId)
  expect((await outsider.request('tools/list')).result.tools.map(({ name }: { name: string }) => name)).not.toContain(
    agent.name,
  )
  expect((await outsider.call(agent.name, { input: 'x' })).error.code).toBe(-32_602)
  for (const taskId of [task.taskId, crypto.randomUUID(), 'x', '', 7, null])
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
      const { error } = await outsider.request(method, {
        taskId,
        inputResponses: { [ids[0]!]: accept({ confirm: true }) },
      })
      expect(error.code).toBe(-32_602)
    }
  const { data } = await rig.service.api('POST', '/api/v1/agents', { name: 'external' })
  const { data: started } = await rig.service.api(
    'POST',
    '/api/ingest/v1/run/start',
    { agent_id: data.agent_id },
    {
      key: (await rig.service.api('POST', `/api/v1/agents/${data.agent_id}/keys`, {})).data.key,
    },
  )
  expect((await mcp.task(started.run_id)).error.code).toBe(-32_602)
  expect((await rig.untilAsked(task.taskId)).ids).toEqual(ids)
})
