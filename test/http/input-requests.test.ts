import { beforeAll, describe, expect, test } from 'bun:test'
import { newTenant } from '../support/feeds.ts'
import { type OutputFrame, OutputReader, untilStatus } from '../support/hosted.ts'
import { callTurn, eventsOf, type HostedRig, startHostedRig, toolResultsOf } from '../support/hosted-rig.ts'
import { startTestService } from '../support/service.ts'

/** Input requests: questions of the model to the caller (docs/hosted-agents.md#pauses). */

let rig: HostedRig
beforeAll(async () => {
  rig = await startHostedRig()
})

const QUESTION = { question: 'Which city?', options: ['Oslo', 'Bergen'] }
const askingAgent = (turns = [callTurn(['request_input', QUESTION]), { text: 'thanks' }], settings: object = {}) =>
  rig.agent(rig.service, turns, { allow_input_requests: true, ...settings })
const answerTo = (id: string, body: object, options = {}) =>
  rig.service.api('POST', `/api/v1/input-requests/${id}/answer`, body, options)
const read = async (id: string) => (await rig.service.api('GET', `/api/v1/input-requests/${id}`)).data

describe('an input request', () => {
  test('pauses the run with its options; the answer reaches the model and the run resumes', async () => {
    const agent = await askingAgent()
    const { status, data } = await agent.invoke({ start_session: true })
    const { request_id } = data.awaiting_input
    expect(status).toBe(202)
    expect(data).toEqual({
      run_id: data.run_id,
      session_id: data.session_id,
      status: 'awaiting_input',
      awaiting_input: { request_id, ...QUESTION, expires_at: null },
      output: null,
    })
    const run = (await rig.service.api('GET', `/api/v1/runs/${data.run_id}`)).data
    expect(run.status).toBe('awaiting_input')
    expect(run.pending).toEqual({ type: 'input', id: request_id, run_id: data.run_id, ...QUESTION, expires_at: null })
    expect(await read(request_id)).toMatchObject({ status: 'pending', ...QUESTION, answer: null, decided_by: null })
    const answered = await answerTo(
      request_id,
      { answer: 'Oslo, "the old one" \u{1f1f3}\u{1f1f4}' },
      { key: agent.agentKey },
    )
    expect([answered.status, answered.data.output]).toEqual([200, { text: 'thanks' }])
    expect(answered.data.session_id).toBe(data.session_id)
    expect(toolResultsOf(agent.requests().at(-1))).toEqual(['Oslo, "the old one" \u{1f1f3}\u{1f1f4}'])
    const record = await read(request_id)
    expect(record).toMatchObject({ status: 'answered', answer: 'Oslo, "the old one" \u{1f1f3}\u{1f1f4}' })
    const events = await eventsOf(rig.service, data.run_id, 'run.completed')
    expect(events.map(({ type }) => type)).toEqual([
      'run.started',
      'llm.call',
      'input.requested',
      'run.paused',
      'input.answered',
      'tool.call.finished',
      'llm.call',
      'run.completed',
    ])
    expect(events[2]!.payload).toMatchObject({ request_id, ...QUESTION })
    expect(events[4]!.payload).toMatchObject({
      request_id,
      answer: record.answer,
      decided_by: { key_id: record.decided_by, type: 'agent' },
    })
  })

  test('without options has no options field in any response', async () => {
    const agent = await askingAgent([callTurn(['request_input', { question: 'Why?' }])])
    const { data } = await agent.invoke()
    expect(Object.keys(data.awaiting_input).sort()).toEqual(['expires_at', 'question', 'request_id'])
    const [asked] = (await (await agent.stream()).all()) as [OutputFrame]
    expect(Object.keys(asked.data).sort()).toEqual(['expires_at', 'question', 'request_id', 'run_id'])
    expect('options' in (await read(data.awaiting_input.request_id))).toBe(false)
    const run = (await rig.service.api('GET', `/api/v1/runs/${data.run_id}`)).data
    expect('options' in run.pending).toBe(false)
  })

  test('accepts one answer: a second is CONFLICT, naming the first', async () => {
    const { data } = await (await askingAgent()).invoke()
    const { request_id } = data.awaiting_input
    const answers = await Promise.all(['Oslo', 'Bergen', 'Rome'].map((answer) => answerTo(request_id, { answer })))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409])
    const { decided_at, decided_by } = await read(request_id)
    for (const { error, status } of [...answers, await answerTo(request_id, { answer: 'late' })])
      if (status === 409)
        expect(error).toEqual({
          code: 'CONFLICT',
          reason: 'already_decided',
          message: `this was already answered at ${decided_at}, with key ${decided_by}`,
        })
  })

  test('rejects a missing or empty answer, and stays pending', async () => {
    const { data } = await (await askingAgent()).invoke()
    const { request_id } = data.awaiting_input
    for (const body of [{}, { answer: '' }, { answer: 7 }, { answer: 'a', comment: 'b' }]) {
      const { status, error } = await answerTo(request_id, body)
      expect([status, error!.code]).toEqual([400, 'VALIDATION_ERROR'])
    }
    expect((await read(request_id)).status).toBe('pending')
  })

  test('is not found or listed as an approval', async () => {
    const { data } = await (await askingAgent()).invoke()
    const { request_id } = data.awaiting_input
    for (const decision of ['approve', 'reject'])
      expect((await rig.service.api('POST', `/api/v1/approvals/${request_id}/${decision}`, {})).status).toBe(404)
    expect((await rig.service.api('GET', `/api/v1/approvals/${request_id}`)).status).toBe(404)
    const listed = await rig.service.api('GET', `/api/v1/approvals?run_id=${data.run_id}`)
    expect(listed.data.items).toEqual([])
    const questions = await rig.service.api('GET', `/api/v1/input-requests?status=pending&run_id=${data.run_id}`)
    expect(questions.data.items).toHaveLength(1)
  })

  test('is NOT_FOUND for another workspace and FORBIDDEN for another agent', async () => {
    const { data } = await (await askingAgent()).invoke()
    const { request_id } = data.awaiting_input
    const { workspaceKey } = await newTenant(rig.service)
    const { agentKey } = await askingAgent()
    expect((await answerTo(request_id, { answer: 'a' }, { key: workspaceKey })).error!.code).toBe('NOT_FOUND')
    expect((await answerTo(request_id, { answer: 'a' }, { key: agentKey })).error!.code).toBe('FORBIDDEN')
    expect((await read(request_id)).status).toBe('pending')
  })
})

test('without allow_input_requests the model is not offered the tool and cannot call it', async () => {
  const agent = await askingAgent(undefined, { allow_input_requests: false })
  const { status, data } = await agent.invoke()
  expect([status, data.output]).toEqual([200, { text: 'thanks' }])
  expect(agent.requests()[0]!.body.tools).toBeUndefined()
  const [told] = toolResultsOf(agent.requests().at(-1)) as [{ error: string }]
  expect(told.error).toContain('there is no tool "request_input"')
  const offered = await askingAgent()
  await offered.invoke()
  expect(offered.requests()[0]!.body.tools?.map((tool) => tool.function.name)).toEqual(['request_input'])
})

test('an input request and an approval of one model turn are shown in the order they were made', async () => {
  const turns = [callTurn(['request_input', { question: 'Why?' }], ['pay', { n: 1 }]), { text: 'both' }]
  const agent = await askingAgent(turns, { tools: [rig.tools.tool('pay', { requires_approval: true })] })
  const { data } = await agent.invoke()
  const answered = await answerTo(data.awaiting_input.request_id, { answer: 'because' })
  expect([answered.status, answered.data.status]).toEqual([202, 'awaiting_approval'])
  expect((await rig.service.api('GET', `/api/v1/runs/${data.run_id}`)).data.status).toBe('awaiting_approval')
  const { approval_id } = answered.data.awaiting_approval
  const last = await rig.service.api('POST', `/api/v1/approvals/${approval_id}/approve`, {})
  expect(last.data.output).toEqual({ text: 'both' })
  expect(toolResultsOf(agent.requests().at(-1))).toEqual(['because', { took: { n: 1 } }])
})

test('answering supports stream and background', async () => {
  const streaming = await askingAgent()
  const [asked, ...more] = (await (await streaming.stream()).all()) as [OutputFrame]
  const { request_id } = asked.data
  const pause = { run_id: expect.any(String), request_id, ...QUESTION, expires_at: null }
  expect([asked.event, asked.data, more]).toEqual(['awaiting_input', pause, []])
  const path = `/api/v1/input-requests/${request_id}/answer`
  const rest = await OutputReader.open(rig.service, path, { method: 'POST', body: { answer: 'Oslo', stream: true } })
  expect((await rest.all()).at(-1)!.event).toBe('done')
  expect(rest.textOf(2)).toBe('thanks')
  const { data } = await (await askingAgent()).invoke()
  const answered = await answerTo(data.awaiting_input.request_id, { answer: 'Oslo', background: true })
  expect(answered.status).toBe(202)
  await untilStatus(rig.service, data.run_id, 'completed')
})

test('an unanswered input request expires, and the run is timed_out', async () => {
  const service = await startTestService({ ...rig.env, PAUSE_EXPIRES_SECONDS: '1' })
  const agent = await rig.agent(service, [callTurn(['request_input', QUESTION])], { allow_input_requests: true })
  const { data } = await agent.invoke()
  const run = await untilStatus(service, data.run_id, 'timed_out')
  const { request_id } = data.awaiting_input
  expect(run.error_detail).toEqual({ reason: 'input_expired', request_id })
  expect((await service.api('GET', `/api/v1/input-requests/${request_id}`)).data.status).toBe('expired')
  await service.stop()
})
