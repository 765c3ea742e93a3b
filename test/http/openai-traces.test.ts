import { beforeAll, describe, expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import { newAgent } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { ENDED, ingest, STARTED, spanItem, traceId, traceItem } from '../support/openai-traces.ts'
import { eventsOf, runsOf, tasksOf } from '../support/otlp.ts'
import { seededRandom } from '../support/random.ts'
import { rowsInSql, startTestService, type TestService } from '../support/service.ts'

let service: TestService

beforeAll(async () => {
  service = await startTestService()
})

const runOf = async (trace: string) => (await runsOf(service, trace))[0]

const rowsOf = (query: string, params: object = {}) => rowsInSql(service.api, query, { params })

/** A workflow with a turn of an agent: a model call, and a tool that fails. */
function workflow(id = traceId()) {
  const usage = { input_tokens: 1_000_000, output_tokens: 100_000 }
  const totals = { ...usage, cached_input_tokens: 400, cache_write_input_tokens: 0 }
  const task = spanItem(id, {
    type: 'custom',
    name: 'task',
    data: { sdk_span_type: 'task', name: 'Support', usage: { ...totals, requests: 1, total_tokens: 1_100_000 } },
  })
  const agent = spanItem(id, { type: 'agent', name: 'Helper', tools: ['search'] }, { parent_id: task.id })
  const turn = spanItem(
    id,
    { type: 'custom', name: 'turn', data: { sdk_span_type: 'turn', turn: 1, agent_name: 'Helper', usage: totals } },
    { parent_id: agent.id },
  )
  const generation = spanItem(
    id,
    {
      type: 'generation',
      model: 'gpt-5',
      input: [{ role: 'user', content: 'Where is it?' }],
      output: [{ role: 'assistant', content: 'Here.' }],
      model_config: { temperature: 0 },
      usage: { ...usage, details: { input_tokens_details: [{ cached_tokens: 400 }], total_tokens: 1_100_000 } },
    },
    { parent_id: turn.id },
  )
  const tool = spanItem(
    id,
    { type: 'function', name: 'search', input: '{"q":"order"}', output: 'nothing' },
    { parent_id: turn.id, error: { message: 'no index', data: { code: 7 } } },
  )
  const head = traceItem(id, { group_id: 'chat-1', metadata: { tenant: 'a', plan: 3 } })
  return { id, head, task, agent, turn, generation, tool, all: [head, generation, tool, turn, agent, task] }
}

describe('a workflow', () => {
  test('has the first message of the user as input and the last answer as output, in however many calls it comes', async () => {
    const id = traceId()
    const answer = (content: string) => [{ role: 'assistant', content }]
    const ask = { role: 'user', content: 'Where is it?' }
    const root = spanItem(id, { type: 'custom', name: 'task', data: { sdk_span_type: 'task', name: 'Support' } })
    const call = (input: object[], output: object[], second: number) =>
      spanItem(
        id,
        { type: 'generation', model: 'gpt-5', input, output },
        {
          parent_id: root.id,
          started_at: `2026-01-31T09:30:0${second}Z`,
          ended_at: `2026-01-31T09:30:0${second + 1}Z`,
        },
      )
    const first = call([{ role: 'system', content: 'Help.' }, ask], answer('Let me see.'), 1)
    const last = call([{ role: 'user', content: 'A later one.' }], answer('On its way.'), 3)
    // The end comes alone.
    for (const data of [[traceItem(id)], [first], [last], [root]]) await ingest(service, { data })
    const run = await eventually(async () => {
      const [found] = (await service.api('GET', `/api/v1/runs?external_run_id=${id}&include=input,output`)).data.items
      return found?.status === 'completed' && found
    })
    expect(run.output).toEqual({ messages: answer('On its way.') })
    expect(run.input).toEqual({ messages: [ask] })
    const together = traceId()
    const again = [root, last, first].map((item) => ({ ...item, id: `${item.id}x`, trace_id: together }))
    await ingest(service, { data: [traceItem(together), ...again] })
    const { items } = (await service.api('GET', `/api/v1/runs?external_run_id=${together}&include=input,output`)).data
    expect(items[0]).toMatchObject({ input: { messages: [ask] }, output: { messages: answer('On its way.') } })
  })

  test('of the Responses API has neither: the SDK does not send them', async () => {
    const id = traceId()
    const root = spanItem(id, { type: 'agent', name: 'Helper' })
    const call = spanItem(id, { type: 'response', response_id: 'resp_1' }, { parent_id: root.id })
    await ingest(service, { data: [traceItem(id), call, root] })
    expect(await runOf(id)).toMatchObject({ status: 'completed', cost_usd: 0 })
    const { items } = (await service.api('GET', `/api/v1/runs?external_run_id=${id}&include=input,output`)).data
    expect([items[0].input, items[0].output]).toEqual([{}, {}])
  })

  test('becomes a run with tasks, events, tokens and cost; turns and tasks repeat tokens that count once', async () => {
    const { id, all, generation, tool, turn } = workflow()
    const sent = await ingest(service, { data: all })
    expect([sent.status, sent.error]).toEqual([204, null])
    const run = await eventually(async () => {
      const found = await runOf(id)
      return found.event_count === 5 && found
    })
    expect(run).toMatchObject({
      status: 'completed',
      external_run_id: id,
      session_id: 'chat-1',
      started_at: STARTED,
      completed_at: ENDED,
      metadata: { source: 'openai-agents', workflow_name: 'Support', metadata: { tenant: 'a', plan: 3 } },
      usage: { input_tokens: 1_000_000, output_tokens: 100_000 },
      // 999,600 * 1.25 + 400 * 0.125 + 100,000 * 10
      cost_usd: 2.24955,
    })
    const { data: agent } = await service.api('GET', `/api/v1/agents/${run.agent_id}`)
    expect(agent.name).toBe('Support')
    const tasks = await tasksOf(service, id)
    const nameOf = new Map(tasks.map((each: { id: string; name: string }) => [each.id, each.name]))
    const shown = tasks.map((each: Record<string, string>) => [
      ...[each.name, nameOf.get(each.parent_task_id) ?? null, each.status, each.error_message],
      ...[each.input, each.output],
    ])
    expect(shown.sort()).toEqual(
      [
        ['Support', null, 'completed', null, null, null],
        ['Helper', 'Support', 'completed', null, null, null],
        ['turn 1', 'Helper', 'completed', null, null, null],
        [
          ...['generation gpt-5', 'turn 1', 'completed', null],
          { messages: [{ role: 'user', content: 'Where is it?' }] },
          { messages: [{ role: 'assistant', content: 'Here.' }] },
        ],
        ['search', 'turn 1', 'failed', 'no index', { q: 'order' }, { text: 'nothing' }],
      ].sort(),
    )
    const events = await eventsOf(service, id)
    const byName = new Map(events.map((each: { payload: { name: string } }) => [each.payload.name, each]))
    expect(byName.get('generation gpt-5')).toMatchObject({
      type: 'llm.call',
      level: 'info',
      payload: {
        'gen_ai.request.model': 'gpt-5',
        'gen_ai.response.model': 'gpt-5',
        'gen_ai.usage.input_tokens': 1_000_000,
        'gen_ai.usage.output_tokens': 100_000,
        'gen_ai.usage.cache_read.input_tokens': 400,
        model_config: { temperature: 0 },
        span_type: 'generation',
        trace_id: id,
        span_id: generation.id,
        parent_span_id: turn.id,
        duration_ms: 250,
      },
    })
    expect(byName.get('search')).toMatchObject({
      type: 'tool.call.finished',
      level: 'error',
      payload: { 'gen_ai.tool.name': 'search', span_id: tool.id, error: { message: 'no index', data: { code: 7 } } },
    })
    expect(byName.get('turn 1')).toMatchObject({
      type: 'span',
      payload: { span_type: 'turn', turn: 1, usage: { input_tokens: 1_000_000 } },
    })
  })

  test('with spans of the Responses API counts the tokens of their turns, once, whether both come in one call or not', async () => {
    const turnOf = (id: string) => {
      const usage = { input_tokens: 1_000, output_tokens: 10, cached_input_tokens: 400 }
      const turn = spanItem(id, { type: 'custom', name: 'turn', data: { sdk_span_type: 'turn', turn: 1, usage } })
      return [spanItem(id, { type: 'response', response_id: 'resp_1' }, { parent_id: turn.id }), turn]
    }
    for (const calls of [1, 2]) {
      const id = traceId()
      const data = [...turnOf(id), ...turnOf(id)]
      const parts = calls === 1 ? [data] : [data.slice(0, 3), data.slice(3)]
      for (const part of [...parts, ...parts])
        expect(await ingest(service, { data: part })).toMatchObject({ status: 204 })
      await eventually(async () => {
        const run = await runOf(id)
        return run.event_count === 4 && run.usage.input_tokens === 2_000 && run.usage.output_tokens === 20
      })
      await eventually(async () => {
        const [{ calls: counted }] = await rowsOf(
          `SELECT countIf(payload.gen_ai.usage.cache_read.input_tokens::UInt64 = 400) AS calls FROM events
           WHERE type = 'llm.call' AND run_id = (SELECT any(run_id) FROM runs WHERE external_run_id = {id:String})`,
          { id },
        )
        return Number(counted) === 2
      })
    }
  })

  test('that is sent again, whole or in parts, changes no row', async () => {
    const { id, all } = workflow()
    const first = await ingest(service, { data: all })
    const read = async () => [await runOf(id), await tasksOf(service, id), await eventsOf(service, id)]
    const before = await eventually(async () => {
      const rows = await read()
      return rows[0].event_count === 5 && rows
    })
    for (const data of [all, ...all.map((item) => [item]), all.toReversed()]) {
      const again = await ingest(service, { data })
      expect([again.status, again.headers.get('x-last-seq')]).toEqual([204, null])
    }
    expect(Number(first.headers.get('x-last-seq'))).toBeGreaterThan(0)
    expect(await read()).toEqual(before)
  })

  test('in any order and split over calls gives the same rows', async () => {
    const random = seededRandom('spans in any order')
    const { agentKey } = await newAgent(service.api)
    const types = [
      (n: number) => ({ type: 'agent', name: `agent ${n}`, handoffs: ['b'] }),
      (n: number) => ({ type: 'turn', turn: n, agent_name: 'a', usage: { input_tokens: n, output_tokens: 1 } }),
      (n: number) => ({ type: 'generation', model: `m${n}`, usage: { input_tokens: n, output_tokens: 2 }, input: [] }),
      // Where the tokens of one without usage go depends on the calls: with its turn, or in an earlier one.
      (n: number) => ({ type: 'response', response_id: `resp_${n}`, usage: { input_tokens: n } }),
      (n: number) => ({ type: 'function', name: `tool ${n}`, input: `{"n":${n}}`, output: `${n}` }),
      (n: number) => ({ type: 'handoff', from_agent: 'a', to_agent: `b${n}` }),
      (n: number) => ({ type: 'guardrail', name: `guardrail ${n}`, triggered: n % 2 === 0 }),
      (n: number) => ({ type: 'custom', name: `custom ${n}`, data: { n, __proto__: null, deep: [{ n }] } }),
      (n: number) => ({ type: 'mcp_tools', server: `s${n}`, result: ['x'] }),
      (n: number) => ({ type: 'speech', model: `tts-${n}`, input: 'hi', output: { data: 'AA==', format: 'pcm' } }),
      (n: number) => ({ type: 'transcription', model: `t-${n}`, input: { data: 'AA==', format: 'pcm' }, output: 'hi' }),
      (n: number) => ({ type: 'unheard_of', name: `new ${n}`, value: n }),
    ]
    const pairs: string[][] = []
    let spansSent = 0
    for (let trial = 0; trial < 12; trial++) {
      const spans = Array.from({ length: random.int(1, 14) }, (_, n) => ({
        id: `span_${trial}_${n}`,
        parent: n === 0 ? null : `span_${trial}_${random.int(0, n - 1)}`,
        data: random.pick(types)(n),
        error: random.bool(0.2) ? { message: `failed ${n}` } : null,
      }))
      spansSent += spans.length
      const pair = [traceId(), traceId()]
      for (const id of pair) {
        const items: object[] = spans.map(({ id: spanId, parent, data, error }) =>
          spanItem(id, data, { id: spanId, parent_id: parent, error }),
        )
        items.push(traceItem(id, { group_id: `group ${trial}`, metadata: { trial } }))
        const shuffled = [...items, ...items.slice(0, random.int(0, 3))]
          .map((item) => ({ item, order: random.int(0, 1e9) }))
          .sort((a, b) => a.order - b.order)
          .map(({ item }) => item)
        while (shuffled.length > 0) {
          const batch = shuffled.splice(0, random.int(1, shuffled.length))
          expect((await ingest(service, { data: batch }, { key: agentKey })).status).toBe(204)
        }
      }
      pairs.push(pair)
    }
    const ids = pairs.flat()
    await eventually(async () => {
      const counts = `SELECT (SELECT count() FROM runs WHERE external_run_id IN {ids:Array(String)}
          AND status IN ('completed', 'failed')
          AND metadata.metadata.trial IS NOT NULL) AS runs,
        (SELECT count() FROM events WHERE run_id IN (SELECT run_id FROM runs WHERE external_run_id IN {ids:Array(String)})) AS events`
      const [row] = await rowsOf(counts, { ids })
      return Number(row.runs) === ids.length && Number(row.events) === 2 * spansSent && row
    })
    const columns = (trace: string) => `replaceAll(toString(tuple(${trace})), r.external_run_id, '') AS row`
    const joined = 'JOIN runs AS r ON r.run_id = t.run_id WHERE r.external_run_id IN {ids:Array(String)}'
    const parts = [
      `SELECT external_run_id AS trace, ${columns('r.status, r.session_id, r.metadata, r.started_at, r.completed_at, r.error_message')}
       FROM runs AS r WHERE external_run_id IN {ids:Array(String)}`,
      `SELECT r.external_run_id AS trace, ${columns('t.name, t.status, t.input, t.output, t.error_message, t.started_at, t.completed_at')}
       FROM tasks AS t ${joined}`,
      `SELECT r.external_run_id AS trace, ${columns('t.type, t.level, toString(t.payload), t.occurred_at')} FROM events AS t ${joined}`,
    ]
    for (const query of parts) {
      const rows: { trace: string; row: string }[] = await rowsOf(`${query} ORDER BY trace, row`, { ids })
      const of = (id: string | undefined) => rows.filter(({ trace }) => trace === id).map(({ row }) => row)
      for (const [one, other] of pairs) expect(of(one)).toEqual(of(other))
      expect(rows.length).toBeGreaterThanOrEqual(ids.length)
    }
  })

  test('of which another agent reports a part with its own key gets a run for that part', async () => {
    const { id, head, task, tool } = workflow()
    const [first, second] = [await newAgent(service.api), await newAgent(service.api)]
    await ingest(service, { data: [head, tool] }, { key: first.agentKey })
    const before = await runOf(id)
    expect((await ingest(service, { data: [head, task] }, { key: second.agentKey })).status).toBe(204)
    const runs = await runsOf(service, id)
    expect(runs.map((run: { agent_id: string }) => run.agent_id).sort()).toEqual([first.agentId, second.agentId].sort())
    const own = runs.find((run: { agent_id: string }) => run.agent_id === second.agentId)
    expect(own).toMatchObject({ parent_run_id: before.run_id, status: 'completed' })
    expect(runs.find((run: { agent_id: string }) => run.agent_id === first.agentId).status).toBe('running')
  })
})

describe('errors have the shape of those of OpenAI', () => {
  test('and name the place; the other items of the call are stored', async () => {
    const { id, all, tool } = workflow()
    for (const [bad, param] of [
      [{ object: 'trace.span' }, 'id'],
      [{ object: 'span' }, 'object'],
      ['text', 'object'],
      [{ object: 'trace', id: 'a b' }, 'id'],
      [spanItem(id, { type: 5 }), 'span_data.type'],
      [spanItem(id, []), 'span_data'],
      [spanItem(id, { type: 'agent' }, { started_at: 'yesterday' }), 'started_at'],
      [spanItem(id, { type: 'agent' }, { ended_at: 5 }), 'ended_at'],
      [spanItem(id, { type: 'agent' }, { parent_id: '' }), 'parent_id'],
      [spanItem('\n', { type: 'agent' }), 'trace_id'],
    ] as const) {
      const { status, error } = await ingest(service, { data: [all[0], tool, bad] })
      expect([status, error]).toEqual([
        400,
        {
          message: expect.stringMatching(/^data\[2\]\.[\w.]+: expected .*; 2 of 3 items are stored$/),
          type: 'invalid_request_error',
          param: `data[2].${param}`,
          code: 'invalid_value',
        },
      ])
    }
    expect((await tasksOf(service, id)).map((task: { name: string }) => task.name)).toEqual(['search'])
  })

  test('for bodies that are none, keys that are none, and addresses that do not exist', async () => {
    const refused = async (body: string | object, options: Parameters<typeof ingest>[2] = {}) => {
      const { status, error } = await ingest(service, body, options)
      expect(Object.keys(error ?? {}).sort()).toEqual(['code', 'message', 'param', 'type'])
      return [status, error?.code, error?.param]
    }
    expect(await refused('{')).toEqual([400, 'invalid_value', 'body'])
    expect(await refused('[]')).toEqual([400, 'invalid_value', 'body'])
    expect(await refused('{"data":5}')).toEqual([400, 'invalid_value', 'data'])
    expect(await refused({})).toEqual([400, 'invalid_value', 'data'])
    expect(await refused({ data: [] }, { key: null })).toEqual([401, 'invalid_api_key', null])
    expect(await refused({ data: [] }, { key: 'sk-none' })).toEqual([401, 'invalid_api_key', null])
    const plain = await refused({ data: [] }, { headers: { 'content-type': 'text/plain' } })
    expect(plain).toEqual([400, 'invalid_value', 'header Content-Type'])
    const zipped = gzipSync(JSON.stringify({ data: [] }))
    expect((await ingest(service, zipped, { headers: { 'content-encoding': 'gzip' } })).status).toBe(204)
    for (const [method, path] of [
      ['POST', '/openai/v1/responses'],
      ['GET', '/openai/v1/traces/ingest'],
    ]) {
      const response = await fetch(service.url + path, { method })
      expect([response.status, await response.json()]).toEqual([
        404,
        {
          error: {
            message: expect.stringContaining(`${method} ${path}`),
            type: 'invalid_request_error',
            param: null,
            code: 'unknown_url',
          },
        },
      ])
    }
  })

  test('for a flood: 429 with the time to wait, which the exporter obeys', async () => {
    const limited = await startTestService({ RATE_LIMIT_EVENTS_PER_SECOND: '1' })
    const items = Array.from({ length: 50 }, () => spanItem(traceId(), { type: 'agent', name: 'a' }))
    let last = await ingest(limited, { data: items })
    for (let calls = 0; calls < 20 && last.status === 204; calls++) last = await ingest(limited, { data: items })
    expect([last.status, last.error]).toMatchObject([
      429,
      { type: 'requests', code: 'rate_limit_exceeded', param: null },
    ])
    expect(Number(last.headers.get('retry-after'))).toBeGreaterThan(0)
  })
})
