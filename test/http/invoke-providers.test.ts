import { beforeAll, describe, expect, test } from 'bun:test'
import { callTurn, eventsOf, type HostedRig, type Script, startHostedRig } from '../support/hosted-rig.ts'
import type { Turn } from '../support/model-server.ts'

/** Hosted agents with the models of real providers: what they demand, refuse and leave out. */

let rig: HostedRig

beforeAll(async () => {
  rig = await startHostedRig()
})

const SIGNED = { extra_content: { google: { thought_signature: 'c2lnbmVkIGJ5IGdlbWluaQ==' } } }
const gemini: Turn = { toolCalls: [{ name: 'pay', arguments: { n: 1 }, id: 'a', extra: SIGNED }] }
const deepSeek: Turn = { ...callTurn(['pay', { n: 1 }]), extra: { reasoning_content: 'First I pay.' } }
const details = [
  { type: 'reasoning.text', text: 'I pay now', signature: 'sig', format: 'anthropic-claude-v1', index: 0 },
  { type: 'reasoning.encrypted', data: 'AAAA', index: 0 },
]
const openRouter: Turn = {
  ...callTurn(['pay', { n: 1 }]),
  extra: { reasoning: 'I pay now', reasoning_details: details },
}

/** Plays a turn, and then refuses a request without what that turn's message had. */
function demanding(turn: Turn): Script {
  return (request, step) => {
    if (step === 0) return turn
    const said = request.body.messages.find(({ tool_calls }) => tool_calls !== undefined)!
    const missing = Object.entries(turn.extra ?? {}).find(([name, value]) => !Bun.deepEquals(said[name], value))?.[0]
    const isSigned = turn.toolCalls!.every(({ extra = {} }, i) => {
      const call = said.tool_calls![i] as unknown as Record<string, unknown>
      return Object.entries(extra).every(([name, value]) => Bun.deepEquals(call[name], value))
    })
    if (missing === undefined && isSigned) return { text: 'paid' }
    return refusal(`The ${missing ?? 'thought_signature'} must be passed back to the API: ${JSON.stringify(said)}`)
  }
}

function refusal(message: string): Turn {
  return { status: 400, body: JSON.stringify({ error: { message } }) }
}

describe.each([
  ['signs its calls', gemini],
  ['thinks with reasoning_content', deepSeek],
  ['sends details of its reasoning', openRouter],
])('a provider that %s', (_, turn) => {
  test('gets back what it sent, streamed or not', async () => {
    const { agent, tools, service } = rig
    const payer = await agent(service, demanding(turn), { tools: [tools.tool('pay')] })
    const { data } = await payer.invoke()
    expect(data).toMatchObject({ status: 'completed', output: { text: 'paid' } })
    const frames = await (await payer.stream()).all()
    expect(frames.at(-1)).toMatchObject({ event: 'done', data: { output: { text: 'paid' } } })
    expect(JSON.stringify(frames)).not.toMatch(/signature|I pay/)
  })

  test('gets it back after a pause, from the stored step', async () => {
    const { agent, tools, service } = rig
    const payer = await agent(service, demanding(turn), { tools: [tools.tool('pay', { requires_approval: true })] })
    const { data } = await payer.invoke()
    expect(data.awaiting_approval).toMatchObject({ tool: 'pay', input: { n: 1 } })
    const { approval_id } = data.awaiting_approval
    const decided = await service.api('POST', `/api/v1/approvals/${approval_id}/approve`, { edited_input: { n: 2 } })
    expect(decided.data).toMatchObject({ status: 'completed', output: { text: 'paid' } })
  })
})

test('a provider that refuses its own reasoning gets none', async () => {
  const { agent, tools, service } = rig
  const script: Script = ({ body }, step) => {
    if (step === 0) return deepSeek
    const isSent = JSON.stringify(body).includes('reasoning_content')
    return isSent ? refusal("property 'reasoning_content' is unsupported") : { text: 'paid' }
  }
  const payer = await agent(service, script, { tools: [tools.tool('pay')] })
  expect((await payer.invoke()).data).toMatchObject({ status: 'completed', output: { text: 'paid' } })
})

test('a later run of a session gets no reasoning of an earlier one', async () => {
  const { agent, tools, service } = rig
  const payer = await agent(service, demanding(deepSeek), { tools: [tools.tool('pay')] })
  const { data } = await payer.invoke({ start_session: true })
  await payer.invoke({ session_id: data.session_id })
  expect(JSON.stringify(payer.requests()[2]!.body.messages)).not.toContain('reasoning_content')
})

describe('an answer that the provider has cut', () => {
  const outcome = async (turn: Turn, settings: object = {}) => {
    const agent = await rig.agent(rig.service, [turn], { tools: [rig.tools.tool('pay')], ...settings })
    return { agent, data: (await agent.invoke()).data }
  }
  const output_schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }

  test('at its limit of tokens is truncated text', async () => {
    const { agent, data } = await outcome({ text: 'Once upon', finishReason: 'length' })
    expect(data).toMatchObject({ status: 'completed', output: { text: 'Once upon', truncated: true } })
    const frames = await (await agent.stream()).all()
    expect(frames.at(-1)).toMatchObject({ event: 'done', data: { output: { text: 'Once upon', truncated: true } } })
    const whole = await outcome({ text: 'Once upon a time' })
    expect(whole.data.output).toEqual({ text: 'Once upon a time' })
  })

  test.each<[string, Turn, object]>([
    ['without any text', { text: '' }, {}],
    ['in its thoughts', { text: '<think>Well, the' }, {}],
    ['in its tool calls', { toolCalls: [{ name: 'pay', arguments: '{"n": 1' }] }, {}],
    ['in structured output', { text: '{"city": "Li' }, { output_schema }],
  ])('%s fails the run as length, without another request', async (_, turn, settings) => {
    const { agent, data } = await outcome({ ...turn, finishReason: 'length' }, settings)
    expect(data).toMatchObject({ status: 'failed', output: null, error_detail: { reason: 'length' } })
    expect(data.error_message).toStartWith('the model has reached its limit of tokens (max_output_tokens)')
    expect(agent.requests()).toHaveLength(1)
  })

  test('after structured output that is whole is not cut', async () => {
    const { data } = await outcome({ text: '{"city": "Lima"}\n\n', finishReason: 'length' }, { output_schema })
    expect(data).toMatchObject({ status: 'completed', output: { city: 'Lima' } })
  })

  test.each<[string, Turn]>([
    ['text', { text: 'How to' }],
    ['nothing', { text: '' }],
    ['tool calls', callTurn(['pay', { n: 1 }])],
  ])('by its content filter after %s fails the run', async (_, turn) => {
    const { agent, data } = await outcome({ ...turn, finishReason: 'content_filter' })
    expect(data).toMatchObject({ status: 'failed', output: null, error_detail: { reason: 'content_filter' } })
    const frames = await (await agent.stream()).all()
    expect(frames.at(-1)).toMatchObject({ event: 'error', data: { code: 'content_filter', status: 'failed' } })
    expect(frames.filter(({ event }) => event === 'tool')).toEqual([])
  })
})

test('a temperature that the model refuses is left out, and its calls say so', async () => {
  const script: Script = ({ body }) =>
    body.temperature === undefined
      ? { text: 'Hello' }
      : refusal(
          "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
        )
  const agent = await rig.agent(rig.service, script, { temperature: 0.2 })
  for (const requests of [2, 3]) {
    const { data } = await agent.invoke()
    expect(data).toMatchObject({ status: 'completed', output: { text: 'Hello' } })
    expect(agent.requests()).toHaveLength(requests)
    const events = await eventsOf(rig.service, data.run_id, 'run.completed')
    expect(events.find(({ type }) => type === 'llm.call')!.payload.settings_left_out).toEqual(['temperature'])
  }
})

test.each(['temperature: must be at most 1', 'temperature is not in the supported range'])(
  'a temperature out of range fails the run: %s',
  async (message) => {
    const agent = await rig.agent(rig.service, () => refusal(message), { temperature: 1.5 })
    expect((await agent.invoke()).data).toMatchObject({ status: 'failed', error_detail: { reason: 'model_failed' } })
    expect(agent.requests()).toHaveLength(1)
  },
)

test('thoughts before the answer are no output, streamed or not, and go back to the model', async () => {
  const { agent, tools, service } = rig
  const thought = '\n<think>\nI pay, then I < 3 say so.\n</think>\n\n'
  const turns = [
    { ...callTurn(['pay', { n: 1 }]), text: `${thought}Paying.` },
    { text: ['<thi', 'nk>Hm', 'm</th', 'ink>', '\n', ' Pa', 'id'] },
  ]
  const payer = await agent(service, turns, { tools: [tools.tool('pay')] })
  const reader = await payer.stream()
  const frames = await reader.all()
  expect(frames.at(-1)!.data.output).toEqual({ text: 'Paid' })
  expect(
    frames
      .filter(({ event }) => event === 'chunk')
      .map(({ data }) => data.delta)
      .join(''),
  ).toBe('Paying.Paid')
  const { data } = await payer.invoke()
  expect(data.output).toEqual({ text: 'Paid' })
  for (const at of [1, 3]) expect(payer.requests()[at]!.body.messages.at(-2)!.content).toBe(`${thought}Paying.`)
})
