import { beforeAll, describe, expect, test } from 'bun:test'
import type { ScoreRecord } from '../../src/activity/scores/schema.ts'
import { EXAMPLES } from '../../src/sql/analytics/examples.ts'
import { eventually } from '../support/eventually.ts'
import { LiveStream, newReporter, newTenant, type Reporter } from '../support/feeds.ts'
import { rowsInSql, startTestService, type TestService } from '../support/service.ts'

/** Scores: docs/scores.md. */

const PATH = '/api/ingest/v1/scores'
let service: TestService
let agent: Reporter

beforeAll(async () => {
  service = await startTestService()
  agent = await newReporter(service.api)
})

function send(scores: unknown, { key = agent.agentKey, query = '', headers = {} } = {}) {
  return service.api('POST', PATH + query, { scores }, { key, headers })
}

async function inSql(runId: string, waitFor: number, columns = 'score_id, value, label') {
  const query = `select ${columns} from scores where run_id = {run:UUID} order by seq`
  return rowsInSql(service.api, query, { params: { run: runId }, wait_for: waitFor })
}

describe('scores', () => {
  test('are accepted with their positions, and readable in SQL and in a list value for value, with defaults', async () => {
    const run_id = await agent.start()
    const task_id = Bun.randomUUIDv7()
    const { status, data } = await send([
      {
        ...{ id: 'é"1', run_id: run_id.toUpperCase(), task_id: task_id.toUpperCase(), name: 'corr\u0065ctness' },
        ...{ value: 0.25, label: 'wrong', text: 'x\ny', comment: '„no“', source: 'judge', metadata: { a: { b: 1 } } },
        created_at: '2026-01-31T10:30:00.123456+01:00',
      },
      { run_id, event_id: 'e1', name: 'helpful', value: true },
      { run_id, session_id: 's', name: 'category', label: 'refund' },
      { run_id, name: 'note', text: 'well done' },
    ])
    expect([status, data]).toEqual([
      200,
      { accepted: 4, duplicates: 0, first_seq: data.first_seq, last_seq: data.first_seq + 3 },
    ])
    const columns =
      'score_id, task_id, event_id, session_id, name, value, data_type, label, text, comment, source, metadata, metadata.a.b::Int64 as b, toString(created_at) as at'
    const [first, ...others] = await inSql(run_id, data.last_seq, columns)
    expect(first).toEqual({
      ...{ score_id: 'é"1', task_id, event_id: null, session_id: null, name: 'correctness', value: 0.25 },
      ...{ data_type: 'number', label: 'wrong', text: 'x\ny', comment: '„no“', source: 'judge' },
      ...{ metadata: { a: { b: 1 } }, b: 1, at: '2026-01-31 09:30:00.123' },
    })
    expect(others).toMatchObject([
      { event_id: 'e1', value: 1, data_type: 'boolean', label: null, source: 'api', metadata: {} },
      { session_id: 's', value: null, data_type: 'label', label: 'refund' },
      { data_type: 'text', text: 'well done' },
    ])
    expect(others[0].score_id).toMatch(/^[0-9A-HJKMNP-TV-Z]{26}$/)
    const list = (await service.api('GET', `/api/v1/runs/${run_id}/scores`)).data
    expect(list.next_cursor).toBeNull()
    expect(list.items.map((item: { value: unknown }) => item.value)).toEqual([null, null, true, 0.25])
    expect(list.items[3]).toMatchObject({ id: 'é"1', run_id, task_id, seq: data.first_seq, metadata: { a: { b: 1 } } })
    const [page] = [(await service.api('GET', `/api/v1/runs/${run_id}/scores?limit=3`)).data]
    const rest = (await service.api('GET', `/api/v1/runs/${run_id}/scores?limit=3&cursor=${page.next_cursor}`)).data
    expect([...page.items, ...rest.items]).toEqual(list.items)
  })

  test('the latest with an id wins, and a repeat of it is a duplicate, whatever the spaces and order of its members', async () => {
    const run_id = await agent.start()
    const other = await agent.start()
    const first = { id: 'a', run_id, name: 'n', value: 1 }
    const both = await send([first, { ...first, run_id: other }, first])
    expect(both.data).toMatchObject({ accepted: 2, duplicates: 1 })
    const again = await send([{ value: 1.0, name: 'n', id: 'a', run_id }])
    expect(again.data).toEqual({ accepted: 0, duplicates: 1, first_seq: null, last_seq: null })
    for (const [change, is] of [
      [{ value: 2 }, { accepted: 1 }],
      [{ value: 2 }, { duplicates: 1 }],
      [{ value: 1 }, { accepted: 1 }],
      [{ value: true }, { accepted: 1 }],
      [{ value: true, comment: 'c' }, { accepted: 1 }],
      [{ value: true, comment: 'c', metadata: {} }, { accepted: 1 }],
      [{ value: true, comment: 'c', metadata: {}, source: 'judge' }, { accepted: 1 }],
      [{ value: true, comment: 'c', metadata: {}, source: 'judge' }, { duplicates: 1 }],
    ] as const)
      expect([change, (await send([{ ...first, ...change }])).data]).toEqual([change, expect.objectContaining(is)])
    const { data } = await send([{ ...first, value: 3 }])
    expect(await inSql(run_id, data.last_seq)).toEqual([{ score_id: 'a', value: 3, label: null }])
    expect(await inSql(other, data.last_seq)).toEqual([{ score_id: 'a', value: 1, label: null }])
    const { items } = (await service.api('GET', `/api/v1/runs/${run_id}/scores`)).data
    expect(items.map((item: { value: number }) => item.value)).toEqual([3])
  })

  test('without ids are stored again, but not when a call is repeated with its Idempotency-Key', async () => {
    const run_id = await agent.start()
    const scores = [
      { run_id, name: 'n', value: 1 },
      { run_id, name: 'n', value: 1 },
    ]
    expect((await send(scores)).data.accepted).toBe(2)
    const headers = { 'idempotency-key': run_id }
    const first = await send(scores, { headers })
    const again = await send(scores, { headers })
    expect([first.data.accepted, again.data]).toEqual([2, first.data])
    expect(await inSql(run_id, first.data.last_seq)).toHaveLength(4)
  })

  test('change nothing of their run, which may have ended, and may be hosted', async () => {
    const run_id = await agent.start()
    await agent.end(run_id)
    await agent.events(run_id, [{ type: 'a' }])
    const read = async () => (await service.api('GET', `/api/v1/runs/${run_id}`)).data
    const before = await eventually(async () => {
      const run = await read()
      return run.event_count > 0 && run
    })
    expect((await send([{ run_id, name: 'n', value: 1 }])).status).toBe(200)
    await agent.events(run_id, [{ type: 'b' }])
    // The event after the score has been counted, so a score would have been, too.
    const after = await eventually(async () => {
      const run = await read()
      return run.event_count > before.event_count && run
    })
    expect([after.event_count, after.status]).toEqual([before.event_count + 1, before.status])
  })

  test('of other workspaces and agents are refused, and with partial=true listed', async () => {
    const run_id = await agent.start()
    const sibling = await newReporter(service.api)
    const stranger = await newTenant(service)
    const foreign = await (await newReporter(stranger.api)).start()
    const scores = [
      { run_id, name: 'n', value: 1 },
      { run_id: foreign, name: 'n', value: 1 },
      { run_id, name: 'n' },
      { run_id: await sibling.start(), name: 'n', value: 1 },
    ]
    const [own, theirs, , siblings] = scores
    expect((await send([own, theirs])).error).toMatchObject({
      code: 'NOT_FOUND',
      message: 'scores[1].run_id: run does not exist',
    })
    expect((await send([siblings])).error).toMatchObject({
      code: 'FORBIDDEN',
      message: 'scores[0].run_id: this run belongs to another agent',
    })
    expect((await service.api('POST', PATH, { scores: [siblings] })).status).toBe(200)
    const partial = await send(scores, { query: '?partial=true' })
    expect([partial.status, partial.data]).toEqual([
      200,
      {
        ...{ accepted: 1, duplicates: 0, first_seq: partial.data.first_seq, last_seq: partial.data.first_seq },
        rejected: [
          { index: 1, message: 'scores[1].run_id: run does not exist' },
          { index: 2, message: 'scores[2].value: required: one of value, label, text' },
          { index: 3, message: 'scores[3].run_id: this run belongs to another agent' },
        ],
      },
    ])
    expect((await stranger.api('GET', `/api/v1/runs/${run_id}/scores`)).status).toBe(404)
    const read = (key: string) => service.api('GET', `/api/v1/runs/${run_id}/scores`, undefined, { key })
    expect([(await read(sibling.agentKey)).status, (await read(agent.agentKey)).status]).toEqual([403, 200])
    const mine = await stranger.api('POST', '/api/v1/query', { query: 'select count() as n from scores' })
    expect(mine.data.rows).toEqual([{ n: 0 }])
  })

  test('one by one for a run: by a workspace key', async () => {
    const run_id = await agent.start()
    const post = (body: unknown, options = {}, id = run_id) =>
      service.api('POST', `/api/v1/runs/${id}/scores`, body, options)
    expect((await post({ name: 'n', label: 'good', metadata: { a: 1 } })).data).toMatchObject({ accepted: 1 })
    expect((await post({ id: 'x', name: 'n', value: 1 })).data).toMatchObject({ accepted: 1, duplicates: 0 })
    expect((await post({ id: 'x', name: 'n', value: 1 })).data).toMatchObject({ accepted: 0, duplicates: 1 })
    expect((await post({ name: 'n', value: 1 }, { key: agent.agentKey })).status).toBe(403)
    expect((await post({ name: 'n', value: 1 }, undefined, Bun.randomUUIDv7())).status).toBe(404)
    expect((await post({ run_id, name: 'n', value: 1 })).error?.message).toContain('run_id')
    expect((await post([])).status).toBe(400)
    expect((await post({ name: 'n' })).error?.message).toBe('value: required: one of value, label, text')
    const { items } = (await service.api('GET', `/api/v1/runs/${run_id}/scores`)).data
    expect(items.map(({ label, source, metadata }: ScoreRecord) => [label, source, metadata])).toEqual([
      [null, 'api', {}],
      ['good', 'api', { a: 1 }],
    ])
  })

  test('feeds show them live and after a cursor, and filter by kind, agent, run and task', async () => {
    const run_id = await agent.start()
    const task_id = Bun.randomUUIDv7()
    const live = await LiveStream.open(service, `/api/v1/stream?kind=score&run_id=${run_id}`)
    await live.until(() => live.text.length > 0)
    const { data } = await send([
      { run_id, name: 'a', value: true, task_id, metadata: { b: 1.5 } },
      { run_id, name: 'b', label: 'x' },
    ])
    await live.until(() => live.items.length === 2)
    const [first, second] = live.items as unknown as { cursor: string; score: object }[]
    expect(first).toMatchObject({ kind: 'score', run_id, agent_id: agent.agentId })
    expect(first.score).toMatchObject({ name: 'a', value: true, task_id, label: null, metadata: { b: 1.5 } })
    expect(second.score).toMatchObject({ name: 'b', value: null, label: 'x', source: 'api' })
    await live.close()
    for (const filter of [`after=${first.cursor}`, `after=0&kind=score`]) {
      const resumed = await LiveStream.open(service, `/api/v1/stream?run_id=${run_id}&kind=score&${filter}`)
      const expected = filter === 'after=0&kind=score' ? [first, second] : [second]
      await resumed.until(() => resumed.items.length === expected.length)
      expect(resumed.items as unknown[]).toEqual(expected)
      await resumed.close()
    }
    const ofTask = await LiveStream.open(service, `/api/v1/stream?after=0&task_id=${task_id}`)
    await ofTask.until(() => ofTask.items.length === 1)
    expect(ofTask.items as unknown[]).toEqual([first])
    await ofTask.close()
    expect(data.last_seq).toBe(data.first_seq + 1)
  })

  test('as many as a call may have, of as many runs, are stored', async () => {
    const runs = await Promise.all(Array.from({ length: 40 }, () => agent.start()))
    const scores = Array.from({ length: 5_000 }, (_, n) => ({ id: `${n}`, run_id: runs[n % 40], name: 'n', value: n }))
    const { data } = await send(scores)
    expect([data.accepted, data.last_seq - data.first_seq]).toEqual([5_000, 4_999])
    expect((await send(scores)).data.duplicates).toBe(5_000)
    const query =
      'select count() as n, uniqExact(run_id) as runs, sum(value) as sum from scores where run_id in {runs:Array(UUID)}'
    expect(await rowsInSql(service.api, query, { params: { runs }, wait_for: data.last_seq })).toEqual([
      { n: 5_000, runs: 40, sum: 12_497_500 },
    ])
  })

  test('the examples of SQL count their means by agent and day, and precision and recall by label', async () => {
    const tenant = await newTenant(service)
    const scorer = await newReporter(tenant.api)
    const runs = await Promise.all(Array.from({ length: 4 }, () => scorer.start()))
    const labels = [
      ['a', 'a'],
      ['a', 'b'],
      ['b', 'b'],
      ['a', undefined],
    ] as const
    const scores = runs.flatMap((run_id, n) => [
      { run_id, name: 'quality', value: n / 10 },
      { run_id, name: 'category', label: labels[n][0], source: 'judge' },
      ...(labels[n][1] === undefined ? [] : [{ run_id, name: 'category', label: labels[n][1], source: 'person' }]),
    ])
    const { data } = await tenant.api('POST', PATH, { scores })
    const rowsOf = async (title: string) => {
      const { query, params } = EXAMPLES.find((example) => example.title === title)!
      return (await tenant.api('POST', '/api/v1/query', { query, params, wait_for: data.last_seq })).data.rows
    }
    const day = expect.stringMatching(/^\d{4}-\d\d-\d\d$/)
    expect(await rowsOf('Mean score by agent and day')).toEqual([
      { day, agent: expect.any(String), score: 'quality', scores: 4, mean: 0.15 },
    ])
    expect(await rowsOf('Precision and recall by label')).toEqual([
      { label: 'b', hits: 1, predicted_runs: 1, actual_runs: 2, precision: 1, recall: 0.5 },
      { label: 'a', hits: 1, predicted_runs: 2, actual_runs: 1, precision: 0.5, recall: 1 },
    ])
  })

  test('are refused with the first mistake of each score, at most 20', async () => {
    const scores = [valid, ...Array.from({ length: 30 }, () => ({ ...valid, name: '', value: 'x' })), valid]
    const { error } = await service.api('POST', PATH, { scores }, { key: agent.agentKey })
    expect(error?.problems).toHaveLength(20)
    expect(error?.problems?.[1]).toEqual({
      param: 'scores[2].name',
      message: 'expected a string of 1 to 200 characters; got ""',
    })
  })

  const valid = { run_id: Bun.randomUUIDv7(), name: 'n', value: 1 }
  test.each([
    ['[]', 'body: expected a JSON object'],
    ['{}', 'scores: required'],
    ['{"scores":[]}', 'scores: expected at least one score'],
    ['{"scores":{}}', 'scores: expected an array of scores; got {}'],
    ['{"scores":[1]}', 'scores[0]: expected a score object'],
    ['{"scores":[{}]}', 'scores[0].run_id: required'],
    ['{"x":[]}', 'x: unknown field; expected scores'],
    ['{"scores":[{"run_id":"x"}]}', 'scores[0].run_id: expected a UUID; got "x"'],
    ['{"scores":[', 'body: not valid JSON'],
    ['{"scores":[{"name":"a","n\\u0061me":"b"}]}', 'body: not valid JSON: expected each member name once'],
    [{ ...valid, name: undefined }, 'scores[0].name: required'],
    [{ ...valid, name: '' }, 'scores[0].name: expected a string of 1 to 200 characters; got ""'],
    [{ ...valid, name: 'é'.repeat(201) }, 'scores[0].name: expected at most 200 characters'],
    [{ ...valid, name: 'a\u0000' }, 'scores[0].name: expected text without U+0000 and lone surrogates'],
    [{ ...valid, comment: '\ud800' }, 'scores[0].comment: expected text without U+0000 and lone surrogates'],
    [{ ...valid, value: undefined }, 'scores[0].value: required: one of value, label, text'],
    [{ ...valid, value: null }, 'scores[0].value: expected a number, true or false; got null'],
    [`{"scores":[{"run_id":"${valid.run_id}","name":"n","value":1e999}]}`, 'scores[0].value: expected a number'],
    [{ ...valid, source: 'human' }, 'scores[0].source: expected one of api, person, judge, import; got "human"'],
    [{ ...valid, task_id: 1 }, 'scores[0].task_id: expected a UUID; got 1'],
    [{ ...valid, event_id: 'a', session_id: 'b' }, 'scores[0]: expected at most one of task_id, event_id, session_id'],
    [{ ...valid, metadata: [] }, 'scores[0].metadata: expected a JSON object; got []'],
    [{ ...valid, metadata: { a: 'a'.repeat(600_000) } }, 'scores[0].metadata: expected at most 524288 bytes'],
    [{ ...valid, created_at: 'now' }, 'scores[0].created_at: expected an RFC 3339 timestamp'],
    [{ ...valid, values: 1 }, 'scores[0].values: unknown field; expected run_id, name, value'],
  ])('%#: are refused with the place that is wrong', async (body, problem) => {
    const text = typeof body === 'string' ? body : JSON.stringify({ scores: [body] })
    for (const query of ['', '?partial=true']) {
      const { status, data, error } = await service.api('POST', PATH + query, text, { key: agent.agentKey })
      if (status === 200) expect(data.rejected[0].message).toStartWith(problem)
      else expect([status, error?.message.slice(0, problem.length)]).toEqual([400, problem])
    }
  })
})
