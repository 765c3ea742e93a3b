import { describe, expect, test } from 'bun:test'
import { NIL_UUID } from '../../src/base/ids.ts'
import { members } from '../../src/base/json-parts.ts'
import {
  type Activity,
  eventActivity,
  runActivity,
  scoreActivity,
  taskActivity,
} from '../../src/feeds/live/activity.ts'
import { deliveryIdOf, parseDeliveryId } from '../../src/feeds/webhooks/delivery-id.ts'
import {
  BODY_BYTES_MAX,
  endedRuns,
  messagesOf,
  type RunDetails,
  testMessage,
} from '../../src/feeds/webhooks/message.ts'
import type { EventRow, RunRow, ScoreRow, TaskRow } from '../../src/stores/journal/rows.ts'
import { runRef } from '../support/events.ts'
import { seededRandom } from '../support/random.ts'
import { runRow, taskRow } from '../support/rows.ts'

/** Bodies of messages: what they say, and that they never get long (docs/webhooks.md#messages). */

const RUN = runRef()
const WEBHOOK = { webhook_id: '01999999-aaaa-7bbb-8ccc-dddddddddddd', format: 'standard' } as const
const POSITION = { epoch: 'e-1', seq: 42, receivedAt: Date.UTC(2026, 0, 31, 9, 30) }
const NO_DETAILS: ReadonlyMap<string, RunDetails> = new Map()

const event = (fields: Partial<EventRow>): Activity =>
  eventActivity(POSITION, {
    ...{ agent_id: RUN.agentId, run_id: RUN.runId, event_id: 'E1', type: 'note', level: 2, payload: '{}' },
    ...{ occurred_at: POSITION.receivedAt, task_id: null },
    ...fields,
  })
const run = (fields: Partial<RunRow>) => runActivity(POSITION, runRow(RUN, fields))
const task = (fields: Partial<TaskRow>) => taskActivity(POSITION, taskRow(RUN, fields))
const score = (fields: Partial<ScoreRow>) =>
  scoreActivity(POSITION, {
    ...{
      agent_id: RUN.agentId,
      run_id: RUN.runId,
      score_id: 'S1',
      name: 'thumbs',
      data_type: 2,
      value: 0,
      label: null,
    },
    ...{ text: null, comment: null, source: 2, metadata: '{}', created_at: POSITION.receivedAt },
    ...{ task_id: null, event_id: null, session_id: null },
    ...fields,
  })
const alert = (type: string, payload: Record<string, unknown>) =>
  event({ agent_id: NIL_UUID, run_id: NIL_UUID, type, payload: JSON.stringify(payload) })

function sent(
  activity: Activity,
  { details = NO_DETAILS, format = 'standard' as 'standard' | 'slack', origin = '' } = {},
) {
  const [message] = messagesOf(
    { ...WEBHOOK, format },
    { epoch: 'e-1', activities: [activity], details },
    origin || undefined,
  )
  if (message === undefined) throw new Error('no message')
  expect(Buffer.byteLength(message.body)).toBeLessThanOrEqual(BODY_BYTES_MAX)
  return { ...message, content: JSON.parse(message.body) }
}

const details = (fields: Partial<RunDetails> = {}) =>
  new Map([
    [
      RUN.runId,
      {
        ...{ input: '{"q":1.0}', output: '{"a":12345678901234567890}', cost_usd: '0.25', event_count: '7' },
        ...{ usage: '{"input_tokens":1,"output_tokens":2,"total_tokens":3}', last_event_at: 'null' },
        ...fields,
      },
    ],
  ])

describe('a standard message', () => {
  test('has the type, the time, the cursor and the activity, whose values are as they were sent', () => {
    const { body, content, ...rest } = sent(event({ payload: '{"n":1.0,"big":12345678901234567890}' }))
    expect(rest).toEqual({
      deliveryId: 'msg_01999999aaaa7bbb8cccdddddddddddd_e-1_42',
      ...{ type: 'note', seq: 42, runId: RUN.runId, timestamp: '2026-01-31T09:30:00.000Z' },
    })
    expect(content).toMatchObject({ type: 'note', timestamp: '2026-01-31T09:30:00.000Z', cursor: 'e-1.42' })
    expect(content.data).toEqual(JSON.parse(event({ payload: '{"n":1.0,"big":12345678901234567890}' }).text))
    expect(body).toContain('"payload":{"n":1.0,"big":12345678901234567890}')
  })

  test('of the end of a run has what the run got, gave and cost', () => {
    const ended = run({ status: 'completed' })
    expect(endedRuns([ended, run({ status: 'running' }), ended, event({})])).toEqual([RUN.runId])
    const { type, body, content } = sent(ended, { details: details() })
    expect(type).toBe('run.completed')
    expect(content.data.run).toMatchObject({ status: 'completed', cost_usd: 0.25, event_count: 7 })
    expect(content.data.run.usage.total_tokens).toBe(3)
    expect(body).toContain('"input":{"q":1.0},"output":{"a":12345678901234567890}')
    expect(content.data).not.toHaveProperty('truncated')
    expect(sent(ended).content.data.run.status).toBe('completed')
  })

  test.each([
    ['alert.fired', 'event.alert.fired'],
    ['webhook.disabled', 'event.webhook.disabled'],
    ['run.completed', 'event.run.completed'],
    ['approval.requested', 'approval.requested'],
    ['alerts', 'alerts'],
  ])('of an event %p of a run has the type %p', (type, expected) => {
    expect(sent(event({ type })).type).toBe(expected)
  })

  test('is not made of a run that was only counted again', () => {
    const activities = [run({ status: 'completed', is_recount: true })]
    expect(endedRuns(activities)).toEqual([])
    expect(messagesOf(WEBHOOK, { epoch: 'e-1', activities, details: details() }, undefined)).toEqual([])
  })

  test('of a task has its status as the type', () => {
    expect(sent(task({ status: 'failed' })).type).toBe('task.failed')
  })
})

describe('an alert', () => {
  const payload = { alert_id: RUN.runId, name: 'errors', series: {}, state: 'firing', notify: [WEBHOOK.webhook_id] }

  test('is sent to the endpoints that it names, and belongs to no run', () => {
    const { runId, type, content } = sent(alert('alert.fired', payload))
    expect([runId, type, content.data.run_id, content.data.agent_id]).toEqual([null, 'alert.fired', null, null])
    expect(content.data.event.payload).toEqual(payload)
  })

  test.each([
    ['of another endpoint', 'alert.fired', { ...payload, notify: [RUN.runId] }],
    ['that has only changed', 'alert.changed', payload],
    ['that is no alert', 'webhook.disabled', { ...payload, webhook_id: WEBHOOK.webhook_id }],
  ])('%s is not sent', (_, type, content) => {
    const activities = [alert(type, content)]
    expect(messagesOf(WEBHOOK, { epoch: 'e-1', activities, details: NO_DETAILS }, undefined)).toEqual([])
  })

  test('keeps what it says when its rows are long', () => {
    const rows = Array.from({ length: 10 }, () => ({ text: '"'.repeat(5_000) }))
    const { data } = sent(alert('alert.fired', { ...payload, rows })).content
    expect(data).toMatchObject({ truncated: true, link: `/api/v1/alerts/${RUN.runId}` })
    expect(data.event.payload).toEqual({ ...payload, rows: null })
  })
})

describe('what is long is left out', () => {
  const LONG = JSON.stringify({ text: 'ü'.repeat(4_100) })
  const apiRun = `/api/v1/runs/${RUN.runId}`

  test.each([
    ['a payload', event({ payload: LONG }), 'event', 'payload', `${apiRun}/events?after_seq=41&limit=1`],
    ['the input of a task', task({ input: LONG }), 'task', 'input', `${apiRun}/tasks`],
    ['the output of a task', task({ output: LONG }), 'task', 'output', `${apiRun}/tasks`],
  ])('%s beyond 8 KiB', (_, activity, kind, name, link) => {
    const { data } = sent(activity, { origin: 'https://runs.example' }).content
    expect(data).toMatchObject({ truncated: true, link: `https://runs.example${link}` })
    expect(data[kind][name]).toBeNull()
  })

  test.each(['input', 'output'] as const)('the %s of a run that was too long to be read', (name) => {
    const { data } = sent(run({ status: 'failed' }), { details: details({ [name]: null }) }).content
    expect(data).toMatchObject({ truncated: true, link: apiRun })
    expect(data.run[name]).toBeNull()
  })

  test.each<[string, Activity, string[]]>([
    ['200 tags', run({ tags: Array.from({ length: 200 }, () => 'x'.repeat(2_000)) }), ['tags']],
    ['error_detail', run({ error_detail: JSON.stringify({ text: 'x'.repeat(1_000_000) }) }), ['error_detail']],
    ['quotes', run({ error_message: '"'.repeat(15_000) }), ['error_message']],
    ['control characters', run({ error_message: '\u0001'.repeat(5_000) }), ['error_message']],
    [
      'the longest of several',
      run({ metadata: LONG, error_detail: LONG, pending: `${LONG.slice(0, -4)}"}` }),
      ['metadata'],
    ],
    ['a name', task({ name: '\u0001'.repeat(10_000), error_message: 'short' }), ['name']],
    ['a type', event({ type: '\u0001📏'.repeat(5_000) }), ['type']],
    [
      'everything',
      run(Object.fromEntries(['metadata', 'error_detail', 'pending'].map((name) => [name, LONG]))),
      ['metadata'],
    ],
  ])('so that the body fits: %s', (_, activity, leftOut) => {
    const { data } = sent(activity).content
    expect(data.truncated).toBe(true)
    const record = data[activity.kind]
    for (const name of leftOut) expect(record[name]).toBeNull()
    expect(data).toMatchObject({ run_id: RUN.runId, cursor: 'e-1.42' })
  })

  test('nothing of a body that just fits', () => {
    const rest = Buffer.byteLength(sent(run({ error_message: '' })).body)
    const fits = (length: number) => sent(run({ error_message: 'x'.repeat(length) })).content.data.truncated !== true
    expect([fits(BODY_BYTES_MAX - rest), fits(BODY_BYTES_MAX - rest + 1)]).toEqual([true, false])
  })
})

describe('a message for Slack', () => {
  const slack = (activity: Activity) => sent(activity, { format: 'slack', origin: 'https://runs.example' })
  const textsOf = (blocks: { type: string; text: { text: string } }[]) => blocks.map(({ text }) => text.text)

  test('escapes markup and links to the page', () => {
    const { content } = slack(run({ status: 'timed_out', error_message: '<!channel> a & b' }))
    expect(content.text).toBe('Run timed out')
    expect(textsOf(content.blocks)).toEqual([
      'Run timed out',
      `*Run:* ${RUN.runId}\n*Error:* &lt;!channel&gt; a &amp; b`,
      `<https://runs.example/#/runs/${RUN.runId}|Open>`,
    ])
  })

  test('mentions nobody, and links to nothing that a caller wrote', () => {
    const words = '@here @channel @bob see https://evil.example, a@b.example'
    const { body, content } = slack(task({ name: words, error_message: words }))
    expect(body).not.toMatch(/(?<!\w)@\w/)
    expect(body).toContain('a@b.example')
    expect(content.text).not.toContain('://')
    for (const { type, text } of content.blocks) if (type === 'section') expect(text.verbatim).toBe(true)
    expect(content).toMatchObject({ parse: 'none', link_names: false, unfurl_links: false })
  })

  test.each([
    [
      'approval.requested',
      { approval_id: NIL_UUID, tool: 'refund', input: { a: 1 } },
      'Approval needed: refund',
      'approvals',
    ],
    ['input.requested', { request_id: NIL_UUID, question: 'Which?' }, 'A run asks a question', 'input-requests'],
  ])('of %p links to the form', (type, payload, title, kind) => {
    const { content } = slack(event({ type, payload: JSON.stringify(payload) }))
    const texts = textsOf(content.blocks)
    expect(texts[0]).toBe(title)
    expect(texts.at(-1)).toBe(`<https://runs.example/#/waiting/${kind}/${NIL_UUID}|Open>`)
  })

  test('has no link when the page has no known address', () => {
    expect(sent(run({}), { format: 'slack' }).body).not.toContain('|Open>')
  })

  test('never exceeds the limits of Slack', () => {
    const long = '<&"\u0001📏'.repeat(2_000)
    const payload = JSON.stringify({
      tool: long,
      name: long,
      series: { long },
      error: long,
      rows: [{ long }],
      input: { long },
    })
    const notify = { notify: [WEBHOOK.webhook_id], ...JSON.parse(payload) }
    const activities = [
      run({ status: 'failed', error_message: long }),
      task({ name: long, error_message: long }),
      event({ type: long, payload }),
      event({ type: 'approval.requested', payload }),
      alert('alert.fired', notify),
    ]
    for (const activity of activities) {
      const [title, ...texts] = textsOf(slack(activity).content.blocks)
      expect(title?.length).toBeLessThanOrEqual(150)
      for (const text of texts) expect(text.length).toBeLessThanOrEqual(3_000)
    }
  })
})

test('an activity that no message can be made of is a message with a problem, and no other is held up', () => {
  const broken: Activity = { ...event({}), seq: 41, text: '{"cursor"' }
  const activities = [{ ...broken, kind: 'run' as const, endsRun: true }, event({})]
  expect(endedRuns(activities)).toEqual([])
  const seqs: number[] = []
  const batch = { epoch: 'e-1', activities, details: NO_DETAILS, onBroken: (seq: number) => void seqs.push(seq) }
  const messages = messagesOf(WEBHOOK, batch, undefined)
  expect(messages.map(({ seq, problem }) => [seq, problem])).toEqual([
    [41, 'no message can be made of this activity'],
    [42, undefined],
  ])
  expect(seqs).toEqual([41])
})

test('a test message says so, in both formats', () => {
  const message = testMessage(WEBHOOK, '01J', new Date(POSITION.receivedAt))
  expect(message).toMatchObject({ deliveryId: 'msg_01999999aaaa7bbb8cccdddddddddddd_test_01J', type: 'webhook.test' })
  expect(JSON.parse(message.body)).toMatchObject({ type: 'webhook.test', timestamp: message.timestamp })
  expect(JSON.parse(testMessage({ ...WEBHOOK, format: 'slack' }, '01J', new Date()).body)).toHaveProperty('text')
})

test('members are found in any JSON, as JSON.parse finds them', () => {
  const random = seededRandom('members of objects')
  const texts = ['', 'a', '"', '\\', '\\"', '{', '}', '],', ':', '\u0000', '📏', '__proto__']
  const value = (depth: number): unknown => {
    const kind = random.int(0, depth === 0 ? 4 : 6)
    if (kind < 2) return Array.from({ length: 3 }, () => random.pick(texts)).join('')
    if (kind < 5) return random.pick([null, true, false, 0, -1.5e300])
    const inner = Array.from({ length: random.int(0, 3) }, (_, i) => [`${i}${random.pick(texts)}`, value(depth - 1)])
    return kind === 5 ? inner.map(([, each]) => each) : Object.fromEntries(inner)
  }
  for (let i = 0; i < 2_000; i++) {
    const object = Object.fromEntries(Array.from({ length: 4 }, (_, n) => [`${n}${random.pick(texts)}`, value(3)]))
    for (const space of [undefined, '\n\t ']) {
      const found = members(JSON.stringify(object, null, space))
      expect(Object.fromEntries(found.map(([name, text]) => [name, JSON.parse(text)]))).toEqual(object)
    }
  }
  expect([...members('{ }'), ...members('null'), ...members('["a"]')]).toEqual([])
})

test('a delivery id names its activity and nothing else does', () => {
  const delivered = { webhookId: WEBHOOK.webhook_id, epoch: 'a_b-1', seq: 7 }
  expect(parseDeliveryId(deliveryIdOf(delivered))).toEqual(delivered)
  for (const text of ['', 'msg_', 'msg_01999999aaaa7bbb8cccdddddddddddd_test_01J', `${deliveryIdOf(delivered)}.1`])
    expect(parseDeliveryId(text)).toBeNull()
})

test('a score is score.added; its long texts are left out', () => {
  const { content } = sent(score({ comment: 'c'.repeat(10_000) }))
  expect(content).toMatchObject({
    type: 'score.added',
    data: { kind: 'score', score: { id: 'S1', name: 'thumbs', value: false, source: 'person', comment: null } },
  })
  expect(content.data.link).toBe(`/api/v1/runs/${RUN.runId}/scores`)
  expect(sent(event({ type: 'score.added' })).content.type).toBe('event.score.added')
  const { text, blocks } = sent(score({ comment: 'too slow' }), { format: 'slack' }).content
  expect([text, JSON.stringify(blocks)]).toEqual(['Score thumbs', expect.stringMatching(/Value:\* false.*too slow/)])
})
