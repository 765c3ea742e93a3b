import { beforeAll, describe, expect, test } from 'bun:test'
import { usageRecord } from '../support/usage.ts'
import { verdict } from './auth-app.ts'
import { type RunsApp, runsApp } from './runs-app.ts'

let app: RunsApp
beforeAll(async () => {
  app = await runsApp({
    run_input_bytes: 2_000,
    run_output_bytes: 4_000,
    external_id_length: 50,
    tags: 3,
    tag_length: 10,
  })
})

const start = (body: object, key?: string) => app.ingest('run/start', { agent_id: app.agent.agentId, ...body }, key)
const NO_RUN = '00000000-0000-7000-8000-000000000000'
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/

describe('run/start', () => {
  test('needs only the agent, applies defaults and returns the run id', async () => {
    const answer = await start({})
    expect(answer.status).toBe(200)
    expect(Object.keys(answer.data)).toEqual(['run_id'])
    expect(answer.data.run_id).toMatch(UUID_V7)
    const { data: run } = await app.read(`runs/${answer.data.run_id}`)
    expect(run).toMatchObject({
      agent_id: app.agent.agentId,
      agent_version: 1,
      status: 'running',
      trigger_type: 'sdk',
      input: {},
      metadata: {},
      tags: [],
      output: null,
      external_run_id: null,
      parent_run_id: null,
      completed_at: null,
      duration_ms: null,
      usage: usageRecord(0, 0),
      cost_usd: 0,
      event_count: 0,
      last_event_at: null,
      pending: null,
    })
    expect(run.started_at).toBe(run.created_at)
  })

  test('stores every field, free-form ones character for character', async () => {
    const input =
      '{"big":12345678901234567890,"one":1.0,"nul":"\\u0000","lone":"\\ud800","__proto__":{"a":1},  "é":"✓"}'
    const parent = await app.start()
    const body = `{"agent_id":"${app.agent.agentId.toUpperCase()}","trigger_type":"webhook","external_run_id":"order 1 ✓",
      "session_id":"chat 1 ✓/?","external_user_id":"Ada ✓",
      "tags":["a","b \\"c\\\\"],"metadata":{"z":1,"a":2},"parent_run_id":"${parent.toUpperCase()}","input":${input}}`
    const { data } = await app.ingest('run/start', body)
    const answer = await app.read(`runs/${data.run_id}`)
    expect(answer.data).toMatchObject({
      trigger_type: 'webhook',
      external_run_id: 'order 1 ✓',
      session_id: 'chat 1 ✓/?',
      external_user_id: 'Ada ✓',
      tags: ['a', 'b "c\\'],
      parent_run_id: parent,
      agent_id: app.agent.agentId,
    })
    expect(answer.text).toContain(`"input":${input},`)
    expect(answer.text).toContain('"metadata":{"z":1,"a":2}')
  })

  test('with a run_id is idempotent for the same body and CONFLICT for another', async () => {
    const run_id = crypto.randomUUID()
    const body = { run_id, input: { a: 1 }, tags: ['x'], external_run_id: 'e' }
    const first = await start(body)
    expect(first.data).toEqual({ run_id })
    expect((await start({ ...body, run_id: run_id.toUpperCase(), trigger_type: 'sdk' })).data).toEqual({ run_id })
    for (const other of [
      { input: { a: 2 } },
      { tags: [] },
      { external_run_id: 'f' },
      { session_id: 's' },
      { external_user_id: 'u' },
      { metadata: { m: 1 } },
      { trigger_type: 'manual' },
    ]) {
      expect(verdict(await start({ ...body, ...other }))).toBe('409 CONFLICT')
    }
    await app.ingest('run/complete', { run_id })
    expect((await start(body)).data).toEqual({ run_id })
    const rows = await app.sql`select from runs where run_id = ${run_id}`
    expect(rows).toHaveLength(1)
  })

  test('an empty external_run_id counts as none', async () => {
    const run_id = crypto.randomUUID()
    expect((await start({ run_id, external_run_id: '' })).data).toEqual({ run_id })
    expect((await start({ run_id })).data).toEqual({ run_id })
    expect((await app.read(`runs/${run_id}`)).data.external_run_id).toBeNull()
  })

  test('concurrent identical starts create one run', async () => {
    const body = { run_id: crypto.randomUUID(), input: { n: 1 } }
    const answers = await Promise.all(Array.from({ length: 20 }, () => start(body)))
    expect(answers.map((answer) => answer.status)).toEqual(Array(20).fill(200))
    const changes = await app.sql`select from runs where run_id = ${body.run_id}`
    expect(changes).toHaveLength(1)
  })

  test('a run_id used in another workspace is available', async () => {
    const other = await app.newWorkspace()
    const theirs = await app.start({ input: { theirs: true } }, await app.newAgent(other.workspaceId))
    expect((await start({ run_id: theirs, input: { mine: true } })).data).toEqual({ run_id: theirs })
    expect((await app.read(`runs/${theirs}`)).data.input).toEqual({ mine: true })
    expect((await app.read(`runs/${theirs}`, other.key)).data.input).toEqual({ theirs: true })
  })

  test('another agent is FORBIDDEN; one of another workspace or an unknown one is NOT_FOUND', async () => {
    const sibling = await app.newAgent(app.workspace.workspaceId)
    const outsider = await app.newAgent((await app.newWorkspace()).workspaceId)
    expect(verdict(await start({ agent_id: sibling.agentId }))).toBe('403 FORBIDDEN')
    expect(verdict(await start({ agent_id: outsider.agentId }))).toBe('404 NOT_FOUND')
    expect(verdict(await start({ agent_id: NO_RUN }))).toBe('404 NOT_FOUND')
  })

  test('an archived agent is NOT_FOUND, a hosted agent is CONFLICT', async () => {
    const archived = await app.newAgent(app.workspace.workspaceId)
    await app.sql`update agents set status = 'archived' where agent_id = ${archived.agentId}`
    expect(verdict(await start({ agent_id: archived.agentId }, archived.key))).toBe('404 NOT_FOUND')
    const hosted = await app.newAgent(app.workspace.workspaceId, { hosted: true })
    expect(verdict(await start({ agent_id: hosted.agentId }, hosted.key))).toBe('409 CONFLICT')
  })

  test('a parent outside the workspace is NOT_FOUND', async () => {
    const theirs = await app.start({}, await app.newAgent((await app.newWorkspace()).workspaceId))
    expect(verdict(await start({ parent_run_id: NO_RUN }))).toBe('404 NOT_FOUND')
    expect(verdict(await start({ parent_run_id: theirs }))).toBe('404 NOT_FOUND')
    const siblings = await app.start({}, await app.newAgent(app.workspace.workspaceId))
    expect((await start({ parent_run_id: siblings })).status).toBe(200)
  })

  test('a retry with the same Idempotency-Key does not start a second run', async () => {
    const body = { agent_id: app.agent.agentId }
    const options = { key: app.agent.key, body, headers: { 'idempotency-key': 'start-1' } }
    const first = await app.call('POST', '/api/ingest/v1/run/start', options)
    const again = await app.call('POST', '/api/ingest/v1/run/start', options)
    expect(again.data).toEqual(first.data)
    expect(again.headers.get('idempotent-replayed')).toBe('true')
  })

  const rejected: [string, object, string][] = [
    ['an unknown field', { inputs: {} }, 'inputs: unknown field; did you mean "input"?'],
    [
      'an unknown trigger',
      { trigger_type: 'cron' },
      'trigger_type: expected one of manual, scheduled, webhook, sdk; got "cron"',
    ],
    ['an input that is not an object', { input: [1] }, 'input: expected a JSON object; got an array'],
    ['an agent_id that is not a UUID', { agent_id: 'a' }, 'agent_id: expected a UUID; got "a"'],
    ['a run_id that is not a UUID', { run_id: 'a' }, 'run_id: expected a UUID; got "a"'],
    [
      'an external_run_id that is too long',
      { external_run_id: 'x'.repeat(51) },
      `external_run_id: expected at most 50 characters; got "${'x'.repeat(51)}"`,
    ],
    [
      'a session_id that is too long',
      { session_id: 'x'.repeat(51) },
      `session_id: expected at most 50 characters; got "${'x'.repeat(51)}"`,
    ],
    ['an empty session_id', { session_id: '' }, 'session_id: expected at least 1 character; got ""'],
    ['a session_id that is no text', { session_id: 7 }, 'session_id: expected a string; got 7'],
    [
      'an external_user_id that is too long',
      { external_user_id: 'x'.repeat(51) },
      `external_user_id: expected at most 50 characters; got "${'x'.repeat(51)}"`,
    ],
    ['an empty external_user_id', { external_user_id: '' }, 'external_user_id: expected at least 1 character; got ""'],
    [
      'NUL in a text',
      { external_run_id: 'a\0' },
      'external_run_id: expected text without the character U+0000; got "a\\u0000"',
    ],
    [
      'a lone surrogate in a text',
      { tags: ['ok', '\ud800'] },
      'tags[1]: expected text without lone surrogates; got "�"',
    ],
    ['too many tags', { tags: ['a', 'b', 'c', 'd'] }, 'tags: expected at most 3 tags; got 4'],
    [
      'a tag that is too long',
      { tags: ['x'.repeat(11)] },
      'tags[0]: expected at most 10 characters; got "xxxxxxxxxxx"',
    ],
  ]
  test.each(rejected)('%s is a VALIDATION_ERROR that names the field', async (_, body, message) => {
    expect((await start(body)).error).toMatchObject({ code: 'VALIDATION_ERROR', message })
  })

  test('a missing agent_id is reported as required', async () => {
    const answer = await app.ingest('run/start', {})
    expect(answer.error).toMatchObject({ code: 'VALIDATION_ERROR', message: 'agent_id: required' })
  })

  test('an input over the limit is PAYLOAD_TOO_LARGE, naming the limit', async () => {
    const answer = await start({ input: { text: 'x'.repeat(2_000) } })
    expect(answer.error).toMatchObject({
      code: 'PAYLOAD_TOO_LARGE',
      message: 'input: expected at most 2000 bytes; got 2011',
    })
    expect(answer.status).toBe(413)
    expect((await start({ input: { text: 'x'.repeat(1_989) } })).status).toBe(200)
  })

  test('a workspace key is FORBIDDEN, and a missing key is UNAUTHENTICATED, whatever the body', async () => {
    expect(verdict(await start({}, app.workspace.key))).toBe('403 FORBIDDEN')
    expect(verdict(await app.call('POST', '/api/ingest/v1/run/start', { body: '{{{' }))).toBe('401 UNAUTHENTICATED')
  })
})

describe('run/complete and run/fail', () => {
  test('complete stores the output and returns status and duration', async () => {
    const run_id = await app.start()
    app.clock.aheadMs += 1_500
    const answer = await app.ingest('run/complete', { run_id: run_id.toUpperCase(), output: { text: 'done' } })
    expect(answer.status).toBe(200)
    expect(Object.keys(answer.data)).toEqual(['run_id', 'status', 'completed_at', 'duration_ms', 'already'])
    expect(answer.data).toMatchObject({ run_id, status: 'completed', already: false })
    expect(answer.data.duration_ms).toBeGreaterThanOrEqual(1_500)
    const { data: run } = await app.read(`runs/${run_id}`)
    expect(run).toMatchObject({
      status: 'completed',
      output: { text: 'done' },
      error_message: null,
      error_detail: null,
    })
    expect(run.completed_at).toBe(answer.data.completed_at)
    expect(Date.parse(run.completed_at) - Date.parse(run.started_at)).toBe(run.duration_ms)
    expect(run.duration_ms).toBe(answer.data.duration_ms)
  })

  test('fail stores message and detail', async () => {
    const run_id = await app.start()
    const answer = await app.ingest('run/fail', { run_id, error_message: 'no such tool', error_detail: { tool: 'x' } })
    expect(answer.data).toMatchObject({ run_id, status: 'failed', already: false })
    const { data: run } = await app.read(`runs/${run_id}`)
    expect(run).toMatchObject({
      status: 'failed',
      output: null,
      error_message: 'no such tool',
      error_detail: { tool: 'x' },
    })
  })

  test('output and error_detail default to an empty object', async () => {
    const completed = await app.start()
    await app.ingest('run/complete', { run_id: completed })
    expect((await app.read(`runs/${completed}`)).data.output).toEqual({})
    const failed = await app.start()
    await app.ingest('run/fail', { run_id: failed, error_message: '' })
    expect((await app.read(`runs/${failed}`)).data).toMatchObject({ error_message: '', error_detail: {} })
  })

  test('repeating an ending returns already and keeps the first; a different ending is CONFLICT', async () => {
    const run_id = await app.start()
    const first = await app.ingest('run/complete', { run_id, output: { n: 1 } })
    const again = await app.ingest('run/complete', { run_id, output: { n: 2 } })
    expect(again.data).toEqual({ ...first.data, already: true })
    expect((await app.read(`runs/${run_id}`)).data.output).toEqual({ n: 1 })
    const other = await app.ingest('run/fail', { run_id, error_message: 'late' })
    expect(other.error).toMatchObject({
      code: 'CONFLICT',
      message: 'run is already completed; it cannot become failed',
    })
  })

  test('of many concurrent endings exactly one takes effect, and every response matches it', async () => {
    const run_id = await app.start()
    const answers = await Promise.all(
      Array.from({ length: 24 }, (_, index) =>
        index % 3 === 0
          ? app.ingest('run/complete', { run_id, output: { index } })
          : index % 3 === 1
            ? app.ingest('run/fail', { run_id, error_message: `${index}` })
            : app.call('POST', `/api/v1/runs/${run_id}/cancel`, { key: app.workspace.key, body: {} }),
      ),
    )
    const { data: run } = await app.read(`runs/${run_id}`)
    const kinds = ['completed', 'failed', 'cancelled']
    expect(answers.filter(({ error, data }) => error === null && !data.already)).toHaveLength(1)
    answers.forEach((answer, index) => {
      if (kinds[index % 3] === run.status) expect(answer.data).toMatchObject({ status: run.status })
      else expect(verdict(answer)).toBe('409 CONFLICT')
    })
  })

  test('a run of another agent is FORBIDDEN, one outside the workspace NOT_FOUND', async () => {
    const siblings = await app.start({}, await app.newAgent(app.workspace.workspaceId))
    const theirs = await app.start({}, await app.newAgent((await app.newWorkspace()).workspaceId))
    for (const [path, extra] of [
      ['run/complete', {}],
      ['run/fail', { error_message: 'x' }],
    ] as const) {
      expect(verdict(await app.ingest(path, { run_id: siblings, ...extra }))).toBe('403 FORBIDDEN')
      expect(verdict(await app.ingest(path, { run_id: theirs, ...extra }))).toBe('404 NOT_FOUND')
      expect(verdict(await app.ingest(path, { run_id: NO_RUN, ...extra }))).toBe('404 NOT_FOUND')
    }
  })

  const rejected: [string, string, object, string][] = [
    ['no run_id', 'run/complete', {}, 'run_id: required'],
    [
      'an output that is not an object',
      'run/complete',
      { run_id: NO_RUN, output: 'x' },
      'output: expected a JSON object; got "x"',
    ],
    ['no error_message', 'run/fail', { run_id: NO_RUN }, 'error_message: required'],
    [
      'an unknown field',
      'run/fail',
      { run_id: NO_RUN, error_message: '', output: {} },
      'output: unknown field; expected only run_id, error_message, error_detail, usage',
    ],
    [
      'NUL in the message',
      'run/fail',
      { run_id: NO_RUN, error_message: '\0' },
      'error_message: expected text without the character U+0000; got "\\u0000"',
    ],
  ]
  test.each(rejected)('%s is a VALIDATION_ERROR that names the field', async (_, path, body, message) => {
    expect((await app.ingest(path, body)).error).toMatchObject({ code: 'VALIDATION_ERROR', message })
  })

  test('output and error_detail over the limit are PAYLOAD_TOO_LARGE', async () => {
    const run_id = await app.start()
    const large = { text: 'x'.repeat(4_000) }
    expect((await app.ingest('run/complete', { run_id, output: large })).error).toMatchObject({
      code: 'PAYLOAD_TOO_LARGE',
      message: 'output: expected at most 4000 bytes; got 4011',
    })
    expect(verdict(await app.ingest('run/fail', { run_id, error_message: 'x', error_detail: large }))).toBe(
      '413 PAYLOAD_TOO_LARGE',
    )
    expect((await app.read(`runs/${run_id}`)).data.status).toBe('running')
  })
})
