import { beforeAll, describe, expect, test } from 'bun:test'
import { newTenant } from '../support/feeds.ts'
import { OutputReader, untilStatus } from '../support/hosted.ts'
import { callTurn, eventsOf, type HostedRig, startHostedRig, toolResultsOf } from '../support/hosted-rig.ts'

/** Approvals of tool calls (docs/hosted-agents.md#pauses), over HTTP, with test servers for the model and the tools. */

let rig: HostedRig
beforeAll(async () => {
  rig = await startHostedRig()
})

const decide = (id: string, decision: 'approve' | 'reject', body: object = {}, options = {}) =>
  rig.service.api('POST', `/api/v1/approvals/${id}/${decision}`, body, options)
const read = async (id: string) => (await rig.service.api('GET', `/api/v1/approvals/${id}`)).data

/** An agent that calls its one tool once; the tool requires approval. */
const approvalAgent = (settings: object = {}, turns = [callTurn(['pay', { n: 7 }]), { text: 'paid' }]) =>
  rig.agent(rig.service, turns, { tools: [rig.tools.tool('pay', { requires_approval: true })], ...settings })

/** Invokes the agent and expects the run to wait for an approval. */
async function paused(agent: Awaited<ReturnType<typeof approvalAgent>>, body: object = {}) {
  const { status, data } = await agent.invoke(body)
  expect([status, data.status]).toEqual([202, 'awaiting_approval'])
  return { runId: data.run_id as string, approvalId: data.awaiting_approval.approval_id as string, data }
}

describe('a tool call that requires approval', () => {
  test('is not made: the response, the run and its events show the pending approval', async () => {
    const agent = await approvalAgent()
    const before = rig.tools.of('pay').length
    const { runId, approvalId, data } = await paused(agent)
    expect(data).toEqual({
      run_id: runId,
      session_id: null,
      status: 'awaiting_approval',
      awaiting_approval: { approval_id: approvalId, tool: 'pay', input: { n: 7 }, expires_at: null },
      output: null,
    })
    expect(rig.tools.of('pay')).toHaveLength(before)
    const run = (await rig.service.api('GET', `/api/v1/runs/${runId}`)).data
    expect(run).toMatchObject({ status: 'awaiting_approval', output: null, completed_at: null })
    expect(run.pending).toEqual({
      type: 'approval',
      id: approvalId,
      run_id: runId,
      tool: 'pay',
      input: { n: 7 },
      expires_at: null,
    })
    expect(await read(approvalId)).toMatchObject({
      approval_id: approvalId,
      run_id: runId,
      root_run_id: runId,
      agent_id: agent.agentId,
      status: 'pending',
      tool: 'pay',
      input: { n: 7 },
      edited_input: null,
      decided_by: null,
      decided_at: null,
    })
    const events = await eventsOf(rig.service, runId, 'run.paused')
    expect(events.map(({ type }) => type)).toEqual(['run.started', 'llm.call', 'approval.requested', 'run.paused'])
    expect(events[2]!.payload).toMatchObject({ approval_id: approvalId, tool: 'pay', input: { n: 7 } })
    expect(events[3]!.payload.pending).toMatchObject({ type: 'approval', id: approvalId })
    const { items } = (await rig.service.api('GET', `/api/v1/approvals?status=pending&run_id=${runId}`)).data
    expect(items.map((item: { approval_id: string }) => item.approval_id)).toEqual([approvalId])
  })

  test('runs with exactly the input shown once approved, and the events record who decided', async () => {
    const agent = await approvalAgent()
    const { runId, approvalId } = await paused(agent)
    const before = rig.tools.of('pay').length
    const { status, data } = await decide(approvalId, 'approve', { comment: 'go on' }, { key: agent.agentKey })
    expect([status, data.status, data.output]).toEqual([200, 'completed', { text: 'paid' }])
    expect(data.run_id).toBe(runId)
    expect(rig.tools.of('pay').slice(before)).toMatchObject([{ input: { n: 7 } }])
    const approval = await read(approvalId)
    expect(approval).toMatchObject({ status: 'approved', comment: 'go on', edited_input: null })
    const keys = (await rig.service.api('GET', `/api/v1/keys?agent_id=${agent.agentId}`)).data.items
    expect(approval.decided_by).toBe(keys[0].key_id)
    const events = await eventsOf(rig.service, runId, 'run.completed')
    expect(events.map(({ type }) => type)).toEqual([
      'run.started',
      'llm.call',
      'approval.requested',
      'run.paused',
      'approval.decided',
      'tool.call.started',
      'tool.call.finished',
      'llm.call',
      'run.completed',
    ])
    expect(events[4]!.payload).toMatchObject({
      approval_id: approvalId,
      tool: 'pay',
      input: { n: 7 },
      decision: 'approved',
      comment: 'go on',
      decided_by: { key_id: keys[0].key_id, type: 'agent' },
    })
    expect((await rig.service.api('GET', `/api/v1/runs/${runId}`)).data.pending).toBeNull()
  })

  test('is not made when rejected: the model gets the comment and the run continues', async () => {
    const agent = await approvalAgent()
    const { runId, approvalId } = await paused(agent)
    const before = rig.tools.of('pay').length
    const { status, data } = await decide(approvalId, 'reject', { comment: 'too much money' })
    expect([status, data.status]).toEqual([200, 'completed'])
    expect(rig.tools.of('pay')).toHaveLength(before)
    expect(toolResultsOf(agent.requests().at(-1))).toEqual([
      { error: 'a person has rejected this call: too much money' },
    ])
    expect(await read(approvalId)).toMatchObject({ status: 'rejected', comment: 'too much money' })
    const call = (await eventsOf(rig.service, runId, 'run.completed')).find(({ type }) => type === 'tool.call.finished')
    expect([call?.payload.status, call?.level]).toEqual(['rejected', 'info'])
  })

  test('runs with the edited input, and both inputs are recorded', async () => {
    const agent = await approvalAgent()
    const { runId, approvalId } = await paused(agent)
    const before = rig.tools.of('pay').length
    const { data, error } = await decide(approvalId, 'approve', { edited_input: { n: 3 } })
    expect(error).toBeNull()
    expect(data.status).toBe('completed')
    expect(rig.tools.of('pay').slice(before)).toMatchObject([{ input: { n: 3 } }])
    expect(await read(approvalId)).toMatchObject({ input: { n: 7 }, edited_input: { n: 3 } })
    const events = await eventsOf(rig.service, runId, 'run.completed')
    const decided = events.find(({ type }) => type === 'approval.decided')!
    expect(decided.payload).toMatchObject({ input: { n: 7 }, edited_input: { n: 3 } })
    expect(events.find(({ type }) => type === 'tool.call.started')!.payload.input).toEqual({ n: 3 })
  })

  test('rejects an edited input that does not match the tool schema, and stays pending', async () => {
    const { approvalId } = await paused(await approvalAgent())
    const { status, error } = await decide(approvalId, 'approve', { edited_input: { n: 'three' } })
    expect([status, error!.code]).toEqual([400, 'VALIDATION_ERROR'])
    expect(error!.message).toContain('edited_input')
    expect(error!.message).toContain('n')
    expect((await read(approvalId)).status).toBe('pending')
    const rejected = await decide(approvalId, 'reject', { edited_input: { n: 1 } })
    expect([rejected.status, rejected.error!.code]).toEqual([400, 'VALIDATION_ERROR'])
  })

  test.each([
    ['{"n": 9223372036854775807}', 'n: the number 9223372036854775807 cannot be passed to a tool exactly'],
    ['{"n": 9007199254740993.0}', 'n: the number 9007199254740993.0 cannot be passed to a tool exactly'],
    ['{"n": 1, "of": {"all": [2, 1e400]}}', 'of.all[1]: the number 1e400 cannot be passed to a tool exactly'],
    ['{"n": 1e-400}', 'n: the number 1e-400 cannot be passed to a tool exactly, it would become 0'],
    ['{"n": 1, "n": 100}', 'n: duplicate member'],
    ['{"n": 1, "of": [{"a": 1, "\\u0061": 2}]}', 'of[0].a: duplicate member'],
    ['{"n": 1, "of": "\\ud83d"}', 'of: text with a lone surrogate'],
  ])('rejects an edited input that the tool would not receive exactly: %s', async (edited, message) => {
    const { approvalId } = await paused(await approvalAgent())
    const body = `{"edited_input": ${edited}}`
    const { status, error } = await rig.service.api('POST', `/api/v1/approvals/${approvalId}/approve`, body)
    expect([status, error!.code]).toEqual([400, 'VALIDATION_ERROR'])
    expect(error!.message).toStartWith(`edited_input.${message}`)
    expect((await read(approvalId)).status).toBe('pending')
  })

  test('rejects a body with a duplicate edited_input', async () => {
    const { approvalId } = await paused(await approvalAgent())
    const body = '{"edited_input": {"n": 1}, "edited_input": {"n": 100}}'
    const { status, error } = await rig.service.api('POST', `/api/v1/approvals/${approvalId}/approve`, body)
    expect([status, error!.code]).toEqual([400, 'VALIDATION_ERROR'])
    expect(error!.message).toBe('body: not valid JSON: expected each member name once at line 1 column 28; got "\\""')
    expect((await read(approvalId)).status).toBe('pending')
  })

  test('is neither requested nor made when the tool would not receive the arguments exactly', async () => {
    for (const args of ['{"n": 1e400}', '{"n": 9223372036854775807}', '{"n": 1, "n": 100}']) {
      const turn = { toolCalls: [{ name: 'pay', arguments: args, id: 'a' }] }
      const agent = await approvalAgent({}, [turn, { text: 'sorry' }])
      const before = rig.tools.of('pay').length
      expect((await agent.invoke()).data.output).toEqual({ text: 'sorry' })
      expect(toolResultsOf(agent.requests().at(-1))).toEqual([
        { error: expect.stringMatching(/^n: (the number|duplicate member)/) },
      ])
      expect(rig.tools.of('pay')).toHaveLength(before)
    }
  })

  test('is made as it was shown, even if the agent is edited in between', async () => {
    const agent = await approvalAgent()
    const { approvalId } = await paused(agent)
    const other = rig.tools.tool('pay', { url: 'http://127.0.0.1:1/steal', requires_approval: false })
    const edit = await rig.service.api('PATCH', `/api/v1/agents/${agent.agentId}`, { tools: [other], prompt: 'Steal.' })
    expect(edit.status).toBe(200)
    const before = rig.tools.of('pay').length
    const { data } = await decide(approvalId, 'approve')
    expect([data.status, data.output]).toEqual(['completed', { text: 'paid' }])
    expect(rig.tools.of('pay').slice(before)).toMatchObject([{ input: { n: 7 } }])
    expect(agent.requests().at(-1)!.body.messages[0]).toEqual({ role: 'system', content: 'You help.' })
  })
})

describe('several calls in one model turn', () => {
  test('each have their own approval, and the run resumes only when all are decided', async () => {
    const tools = [rig.tools.tool('pay', { requires_approval: true }), rig.tools.tool('free')]
    const agent = await rig.agent(
      rig.service,
      [callTurn(['pay', { n: 1 }], ['free', { n: 2 }], ['pay', { n: 3 }]), { text: 'all done' }],
      { tools },
    )
    const before = rig.tools.of('pay').length
    const free = rig.tools.of('free').length
    const { runId, approvalId } = await paused(agent)
    // Calls that need no approval run before the pause.
    expect(rig.tools.of('free').slice(free)).toMatchObject([{ input: { n: 2 } }])
    const first = await decide(approvalId, 'approve')
    expect([first.status, first.data.status]).toEqual([202, 'awaiting_approval'])
    const next = first.data.awaiting_approval
    expect(next).toMatchObject({ tool: 'pay', input: { n: 3 } })
    expect(next.approval_id).not.toBe(approvalId)
    expect((await rig.service.api('GET', `/api/v1/runs/${runId}`)).data.pending.id).toBe(next.approval_id)
    expect(rig.tools.of('pay')).toHaveLength(before)
    expect(agent.requests()).toHaveLength(1)
    const last = await decide(next.approval_id, 'reject')
    expect([last.status, last.data.output]).toEqual([200, { text: 'all done' }])
    expect(rig.tools.of('pay').slice(before)).toMatchObject([{ input: { n: 1 } }])
    expect(toolResultsOf(agent.requests().at(-1))).toEqual([
      { took: { n: 1 } },
      { took: { n: 2 } },
      { error: 'a person has rejected this call' },
    ])
  })

  test('can be decided in any order', async () => {
    const agent = await approvalAgent({}, [callTurn(['pay', { n: 1 }], ['pay', { n: 3 }]), { text: 'all done' }])
    const { runId, approvalId } = await paused(agent)
    const { items } = (await rig.service.api('GET', `/api/v1/approvals?run_id=${runId}`)).data
    const second = items.find((item: { approval_id: string }) => item.approval_id !== approvalId).approval_id
    const answer = await decide(second, 'approve')
    expect([answer.status, answer.data.awaiting_approval.approval_id]).toEqual([202, approvalId])
    expect((await decide(approvalId, 'approve')).data.output).toEqual({ text: 'all done' })
  })
})

describe('response modes of a decision', () => {
  test('with stream, the output continues where it paused', async () => {
    const turns = [{ text: 'I shall pay. ', ...callTurn(['pay', { n: 7 }]) }, { text: 'It is paid.' }]
    const agent = await approvalAgent({}, turns)
    const stream = await agent.stream({})
    const seen = await stream.all()
    const { event, data } = seen.at(-1)!
    const run_id = await stream.runId()
    const { approval_id } = data
    expect(event).toBe('awaiting_approval')
    expect(data).toEqual({ run_id, approval_id, tool: 'pay', input: { n: 7 }, expires_at: null })
    expect(stream.textOf()).toBe('I shall pay. ')
    const path = `/api/v1/approvals/${approval_id}/approve`
    const rest = await OutputReader.open(rig.service, path, { method: 'POST', body: { stream: true } })
    const frames = await rest.all()
    expect(rest.status).toBe(200)
    expect(frames.filter(({ event }) => event !== 'chunk').map(({ event, data }) => [event, data.phase])).toEqual([
      ['tool', 'started'],
      ['tool', 'finished'],
      ['done', undefined],
    ])
    expect(rest.textOf(1)).toBe('')
    expect(rest.textOf(2)).toBe('It is paid.')
    expect(new Set([...seen, ...frames].map(({ id }) => id)).size).toBe(seen.length + frames.length)
  })

  test('with background, it returns immediately', async () => {
    const agent = await approvalAgent()
    const { runId, approvalId } = await paused(agent)
    const { status, data } = await decide(approvalId, 'approve', { background: true })
    expect(status).toBe(202)
    expect(data).toMatchObject({ run_id: runId, output: null })
    expect((await untilStatus(rig.service, runId, 'completed')).output).toEqual({ text: 'paid' })
  })

  test('stream combined with background is rejected, and nothing is decided', async () => {
    const { approvalId } = await paused(await approvalAgent())
    const { status, error } = await decide(approvalId, 'approve', { background: true, stream: true })
    expect([status, error!.code]).toEqual([400, 'VALIDATION_ERROR'])
    expect((await read(approvalId)).status).toBe('pending')
  })

  test('a retry with the same Idempotency-Key replays the first response', async () => {
    const { approvalId } = await paused(await approvalAgent())
    const headers = { 'idempotency-key': crypto.randomUUID() }
    const first = await decide(approvalId, 'approve', {}, { headers })
    const again = await decide(approvalId, 'approve', {}, { headers })
    expect([again.status, again.text]).toEqual([first.status, first.text])
    expect(again.headers.get('idempotent-replayed')).toBe('true')
  })
})

describe('access', () => {
  test('another workspace gets NOT_FOUND, and a key of another agent gets FORBIDDEN', async () => {
    const { approvalId, runId } = await paused(await approvalAgent())
    const tenant = await newTenant(rig.service)
    const sibling = await approvalAgent()
    for (const [method, path] of [
      ['GET', ''],
      ['POST', '/approve'],
      ['POST', '/reject'],
    ] as const) {
      const call = (key: string) =>
        rig.service.api(method, `/api/v1/approvals/${approvalId}${path}`, method === 'GET' ? undefined : {}, { key })
      expect((await call(tenant.workspaceKey)).error!.code).toBe('NOT_FOUND')
      expect((await call(sibling.agentKey)).error!.code).toBe('FORBIDDEN')
    }
    const listed = await rig.service.api('GET', `/api/v1/approvals?run_id=${runId}`, undefined, {
      key: sibling.agentKey,
    })
    expect(listed.data.items).toEqual([])
    expect((await tenant.api('GET', `/api/v1/approvals?run_id=${runId}`)).data.items).toEqual([])
    expect((await read(approvalId)).status).toBe('pending')
    expect((await decide(crypto.randomUUID(), 'approve')).error).toMatchObject({
      code: 'NOT_FOUND',
      message: 'approval does not exist',
    })
  })

  test('an agent key lists only the approvals of its own agent', async () => {
    const agent = await approvalAgent()
    const other = await approvalAgent()
    const { approvalId } = await paused(agent)
    await paused(other)
    const list = (query: string) =>
      rig.service.api('GET', `/api/v1/approvals${query}`, undefined, { key: agent.agentKey })
    expect((await list('')).data.items.map((item: { approval_id: string }) => item.approval_id)).toEqual([approvalId])
    expect((await list(`?agent_id=${other.agentId}`)).error!.code).toBe('FORBIDDEN')
  })

  test('the list filters, paginates and sorts newest first', async () => {
    const agent = await approvalAgent()
    const made: string[] = []
    for (let i = 0; i < 3; i++) made.unshift((await paused(agent)).approvalId)
    await decide(made[1]!, 'reject')
    const ids: string[] = []
    for (let cursor = ''; cursor !== null; ) {
      const path = `/api/v1/approvals?agent_id=${agent.agentId}&limit=2${cursor && `&cursor=${cursor}`}`
      const { data } = await rig.service.api('GET', path)
      ids.push(...data.items.map((item: { approval_id: string }) => item.approval_id))
      cursor = data.next_cursor
    }
    expect(ids).toEqual(made)
    const pending = await rig.service.api('GET', `/api/v1/approvals?agent_id=${agent.agentId}&status=pending`)
    expect(pending.data.items.map((item: { approval_id: string }) => item.approval_id)).toEqual([made[0], made[2]])
    const wrong = await rig.service.api('GET', '/api/v1/approvals?status=answered')
    expect([wrong.status, wrong.error!.code]).toEqual([400, 'VALIDATION_ERROR'])
  })
})
