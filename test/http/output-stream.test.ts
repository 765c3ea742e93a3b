import { beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { newReporter, newTenant } from '../support/feeds.ts'
import { type HostedAgent, newHostedAgent, type OutputFrame, OutputReader, untilStatus } from '../support/hosted.ts'
import { type ModelServer, startModelServer, type Turn } from '../support/model-server.ts'
import { dataOf, startTestService, type TestService } from '../support/service.ts'
import { atEnd } from '../support/teardown.ts'

/**
 * `GET /api/v1/runs/:run_id/output-stream`: following and resuming the output of a run
 * (docs/hosted-agents.md#output-streams).
 */

const NO_ID = '00000000-0000-4000-8000-000000000000'

let service: TestService
let model: ModelServer
let agent: HostedAgent
let toolAgent: HostedAgent

beforeAll(async () => {
  model = startModelServer()
  service = await startTestService({ OPENAI_BASE_URL: model.url, EGRESS_ALLOW: '127.0.0.1' })
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => Response.json({ done: true }) })
  atEnd(() => server.stop(true))
  agent = await newHostedAgent(service)
  toolAgent = await newHostedAgent(service, {
    tools: ['free', 'guarded'].map((name) => ({
      type: 'http',
      name,
      description: '',
      parameters: { type: 'object' },
      method: 'POST',
      url: `http://127.0.0.1:${server.port}`,
      requires_approval: name === 'guarded',
    })),
  })
})

beforeEach(() => model.script({}))

const follow = (runId: string, options = {}) => OutputReader.ofRun(service, runId, options)
const calls = (...names: string[]) => names.map((name, n) => ({ name, arguments: { n }, id: `call_${n}` }))
/** A run with text before, between and after its tool calls. */
const STORY: Turn[] = [
  { text: ['Let ', 'me ', 'see. '], toolCalls: calls('free', 'free') },
  { text: ['Once ', 'more. '], toolCalls: calls('free') },
  { text: ['That ', 'is ', 'it.'] },
]
const TEXTS = ['Let me see. ', 'Once more. ', 'That is it.']

/** The text per step and all other frames, however the text was split into chunks. */
function contentOf(frames: readonly OutputFrame[]) {
  const texts: Record<number, string> = {}
  for (const { event, data } of frames)
    if (event === 'chunk') texts[data.step] = (texts[data.step] ?? '').slice(0, data.offset) + data.delta
  return { texts: Object.values(texts), rest: frames.filter(({ event }) => event !== 'chunk') }
}

describe('a reader', () => {
  test('that connects after the run has ended gets all of it', async () => {
    model.script(STORY)
    const live = await toolAgent.stream()
    await live.all()
    const late = await follow(await live.runId())
    expect(late.status).toBe(200)
    expect(late.response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    const frames = await late.all()
    expect(frames.filter(({ event }) => event === 'chunk').map(({ data }) => data.delta)).toEqual(TEXTS)
    expect(contentOf(frames)).toEqual(contentOf(live.frames))
  })

  test('resumes after any frame, within a text or between tool calls, without gaps or repeats', async () => {
    model.script(STORY)
    const live = await toolAgent.stream()
    const whole = contentOf(await live.all())
    expect(whole.texts).toEqual(TEXTS)
    expect(live.frames.length).toBeGreaterThan(14)
    for (const [index, { id }] of live.frames.entries()) {
      const seen = live.frames.slice(0, index + 1)
      const rest = await (await follow(await live.runId(), { after: id })).all()
      expect(contentOf([...seen, ...rest]), id).toEqual(whole)
    }
  })

  test('that has the last frame gets nothing more, immediately', async () => {
    const { data } = await agent.invoke()
    const [, end] = await (await follow(data.run_id)).all()
    expect(end!.id).toBe('1.2.0')
    for (const after of [end!.id, '999999999.2.999999999999'])
      expect(await (await follow(data.run_id, { after })).all()).toEqual([])
  })

  test('that resumes in a text that was restarted gets the new text from its beginning', async () => {
    const isRead = Promise.withResolvers<void>()
    model.script([{ text: ['Once', ' upon'], cutAfter: 3, cutWhen: isRead.promise }, { text: ['Another', ' story'] }])
    const live = await agent.stream()
    await live.until(() => live.textOf() === 'Once upon')
    isRead.resolve()
    await live.all()
    const [first] = live.frames
    const frames = await (await follow(await live.runId(), { after: first!.id })).all()
    expect(frames[0]!.data).toMatchObject({ delta: 'Another story', offset: 0 })
  })

  test('can connect several times during the run, from the beginning or from the middle', async () => {
    model.script({ text: [...'abcdefghij'], intervalMs: 30 })
    const first = await agent.stream()
    await first.until(() => first.textOf().length >= 3)
    const runId = await first.runId()
    const [whole, rest] = [await follow(runId), await follow(runId, { after: first.frames[1]!.id })]
    await Promise.all([first.all(), whole.all(), rest.all()])
    expect([first.textOf(), whole.textOf()]).toEqual(['abcdefghij', 'abcdefghij'])
    expect(rest.of('chunk')[0]!.data.offset).toBe(2)
    expect(
      rest
        .of('chunk')
        .map(({ data }) => data.delta)
        .join(''),
    ).toBe('cdefghij')
    expect(whole.frames.at(-1)).toEqual(first.frames.at(-1)!)
  })

  test('of a run without streaming gets each text in one chunk', async () => {
    model.script({ text: ['a ', 'b ', 'c'], delayMs: 100 })
    const { data } = await agent.invoke({ background: true })
    const frames = await (await follow(data.run_id)).all()
    expect(frames.map(({ event, data }) => [event, data.delta])).toEqual([
      ['chunk', 'a b c'],
      ['done', undefined],
    ])
  })

  test('of a queued run waits with it', async () => {
    const narrow = await startTestService({ OPENAI_BASE_URL: model.url, HOSTED_RUNS_AT_ONCE: '1' })
    const hosted = await newHostedAgent(narrow)
    const gate = Promise.withResolvers<void>()
    model.script(async () => {
      await gate.promise
      return { text: 'Mine.' }
    })
    await hosted.invoke({ background: true })
    const streamed = await hosted.stream()
    const { data } = await hosted.invoke({ background: true })
    const reader = await OutputReader.ofRun(narrow, data.run_id)
    expect([reader.status, reader.frames]).toEqual([200, []])
    gate.resolve()
    await Promise.all([reader.all(), streamed.all()])
    expect([reader.textOf(), streamed.textOf()]).toEqual(['Mine.', 'Mine.'])
    await narrow.stop()
  })

  test('of a paused run gets the pause on every connect, and continues from there after the decision', async () => {
    model.script([{ text: 'May I?', toolCalls: calls('free', 'guarded') }, { text: 'Thanks.' }])
    const live = await toolAgent.stream()
    const asked = (await live.all()).at(-1)!
    const runId = await live.runId()
    const fresh = await (await follow(runId)).all()
    expect(contentOf(fresh)).toEqual(contentOf(live.frames))
    expect(await (await follow(runId, { after: asked.id })).all()).toEqual([asked])
    await service.api('POST', `/api/v1/approvals/${asked.data.approval_id}/approve`, {})
    const rest = await (await follow(runId, { after: asked.id })).all()
    expect(rest.map(({ event, data }) => [event, data.phase ?? data.delta ?? data.status])).toEqual([
      ['tool', 'started'],
      ['tool', 'finished'],
      ['chunk', 'Thanks.'],
      ['done', 'completed'],
    ])
    expect((await (await follow(runId)).all()).some(({ event }) => event === 'awaiting_approval')).toBe(false)
  })

  test('of a failed run gets the error, even after text that was discarded', async () => {
    const isRead = Promise.withResolvers<void>()
    model.script([{ text: ['Once', ' upon'], cutAfter: 3, cutWhen: isRead.promise }, { status: 400 }])
    const live = await agent.stream()
    await live.until(() => live.textOf() === 'Once upon')
    isRead.resolve()
    await live.all()
    const seen = live.frames.slice(0, -1)
    const [discarded, error] = live.frames.slice(-2)
    expect(discarded!.data).toMatchObject({ delta: '', offset: 0, step: 1 })
    expect([error!.event, live.textOf()]).toEqual(['error', ''])
    for (const after of [undefined, ...seen.map(({ id }) => id)]) {
      const [frame, ...more] = await (await follow(await live.runId(), { after })).all()
      expect([frame!.event, frame!.data, more]).toEqual(['error', error!.data, []])
    }
  })
})

describe('access', () => {
  let runId: string
  beforeAll(async () => {
    model.script({})
    runId = (await agent.invoke()).data.run_id
  })
  const rejectionOf = async (path: string, key: string | null = service.workspaceKey, headers = {}) => {
    const { status, error } = await service.api('GET', `/api/v1/runs/${path}`, undefined, { key, headers })
    return `${status} ${error?.code} ${error?.message}`
  }

  test('a key of the workspace or of the agent can read the stream', async () => {
    expect((await follow(runId, { key: agent.agentKey })).status).toBe(200)
    const stream = `${runId}/output-stream`
    expect(await rejectionOf(stream, toolAgent.agentKey)).toStartWith('403 FORBIDDEN ')
    expect(await rejectionOf(stream, null)).toStartWith('401 UNAUTHENTICATED ')
    expect(await rejectionOf(stream, (await newTenant(service)).workspaceKey)).toBe('404 NOT_FOUND run does not exist')
    expect(await rejectionOf(`${NO_ID}/output-stream`)).toBe('404 NOT_FOUND run does not exist')
    expect(await rejectionOf('x/output-stream')).toStartWith('400 VALIDATION_ERROR path.run_id: expected a UUID')
  })

  test('a feed token can read the stream of its run or agent only', async () => {
    const open = async (scope: object, id = runId) => {
      const { data } = await service.api('POST', '/api/v1/feed-tokens', scope)
      return OutputReader.open(service, `/api/v1/runs/${id}/output-stream?token=${data.token}`, { key: null })
    }
    const other = (await agent.invoke()).data.run_id
    for (const scope of [{}, { run_id: runId }, { agent_id: agent.agentId }])
      expect((await (await open(scope)).all()).at(-1)!.event).toBe('done')
    expect((await open({ run_id: runId }, other)).status).toBe(403)
    expect((await open({ agent_id: toolAgent.agentId })).status).toBe(403)
    expect(await rejectionOf(`${runId}/output-stream?token=${service.workspaceKey}`, null)).toStartWith('401 ')
  })

  test('an external run has no output stream', async () => {
    const reporter = await newReporter(service.api)
    expect(await rejectionOf(`${await reporter.start()}/output-stream`)).toBe(
      '400 VALIDATION_ERROR only runs of hosted agents have an output stream; see …/stream for the feed',
    )
  })

  test('an invalid position is rejected in the header and in the query; the header takes precedence', async () => {
    for (const id of ['x', '1', '1.3.0', '1.0.-1', '1.0.0.a.b', '1.0.0.é', `1.0.${'9'.repeat(13)}`]) {
      if (!id.includes('é'))
        expect(await rejectionOf(`${runId}/output-stream`, undefined, { 'last-event-id': id })).toBe(
          '400 VALIDATION_ERROR header Last-Event-ID: expected the id of a frame of this stream',
        )
      expect(await rejectionOf(`${runId}/output-stream?after=${encodeURIComponent(id)}`)).toBe(
        '400 VALIDATION_ERROR query.after: expected the id of a frame of this stream',
      )
    }
    const both = await OutputReader.open(service, `/api/v1/runs/${runId}/output-stream?after=1.2.0`, { after: '1.1.0' })
    expect((await both.all()).map(({ event }) => event)).toEqual(['done'])
    expect(await rejectionOf(`${runId}/output-stream?from=1`)).toStartWith('400 VALIDATION_ERROR query.from: ')
  })
})

test('shutdown ends streams; after a restart the run continues and its stream can be resumed', async () => {
  model.script([{ text: [...'abcdefghijklmnopqrst'], intervalMs: 500 }, { text: ['Any', 'thing.'] }])
  const first = await startTestService({ OPENAI_BASE_URL: model.url })
  const reader = await (await newHostedAgent(first)).stream()
  await reader.until(() => reader.textOf() === 'ab')
  const runId = await reader.runId()
  await first.stop()
  expect(await reader.all()).not.toBeEmpty()
  expect(reader.of('done')).toEqual([])
  const second = await startTestService({ ...dataOf(first), OPENAI_BASE_URL: model.url })
  const again = await OutputReader.ofRun(second, runId, { after: reader.frames.at(-1)!.id })
  await again.all()
  expect(again.of('chunk')[0]!.data.offset).toBe(0)
  expect(again.textOf()).toBe('Anything.')
  expect((await untilStatus(second, runId, 'completed')).output).toEqual({ text: 'Anything.' })
  await second.stop()
})
