import { beforeAll, describe, expect, test } from 'bun:test'
import type { Answer } from '../support/api.ts'
import { type AuthApp, authApp, verdict } from './auth-app.ts'

/** Agents (docs/agents.md). */

let app: AuthApp
let owner: string

beforeAll(async () => {
  app = await authApp()
  owner = app.owner.key
})

const PATH = '/api/v1/agents'
const create = (body: unknown, headers: Record<string, string> = {}) =>
  app.call('POST', PATH, { key: owner, body, headers })
const get = (id: string) => app.call('GET', `${PATH}/${id}`, { key: owner })
const patch = (id: string, body: unknown) => app.call('PATCH', `${PATH}/${id}`, { key: owner, body })
const HOSTED = { name: 'h', runtime_type: 'hosted', model: 'a-model', prompt: 'You help {{USER}}.' }
const httpTool = (changes: object = {}) => ({
  type: 'http',
  name: 'look_up',
  description: 'Looks something up.',
  parameters: { type: 'object', properties: { q: { type: 'string' } }, required: ['q'] },
  method: 'GET',
  url: 'https://example.com/search',
  ...changes,
})

function expectInvalid(answer: Answer, message: string): void {
  expect(verdict(answer)).toBe('400 VALIDATION_ERROR')
  expect(answer.error?.message).toStartWith(message)
}

describe('POST /api/v1/agents', () => {
  test('creates an external agent from a name, with defaults', async () => {
    const { status, data } = await create({ name: 'worker' })
    expect(status).toBe(200)
    expect(data).toEqual({
      agent_id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
      name: 'worker',
      description: null,
      runtime_type: 'external',
      status: 'active',
      model: null,
      prompt: null,
      tools: null,
      output_schema: null,
      input_schema: null,
      expose: null,
      allow_input_requests: null,
      temperature: null,
      max_output_tokens: null,
      max_steps: null,
      timeout_seconds: null,
      budget_usd: null,
      stale_after_seconds: null,
      metadata: {},
      version: 1,
      created_at: expect.stringMatching(/\.\d{3}Z$/),
      updated_at: data.created_at,
    })
    expect((await get(data.agent_id.toUpperCase())).data).toEqual(data)
  })

  test('creates a hosted agent from a model and a prompt, with defaults', async () => {
    const { data } = await create(HOSTED)
    expect(data).toMatchObject({
      ...HOSTED,
      tools: [],
      output_schema: null,
      input_schema: null,
      expose: [],
      allow_input_requests: false,
      temperature: null,
      max_output_tokens: null,
      max_steps: 20,
      timeout_seconds: 300,
      budget_usd: null,
      stale_after_seconds: null,
    })
  })

  test('returns every field as it was sent', async () => {
    const external = {
      name: 'é🙂',
      description: 'd',
      status: 'paused',
      stale_after_seconds: 60,
      metadata: { team: 'x' },
    }
    expect((await create(external)).data).toMatchObject(external)
    const hosted = {
      ...HOSTED,
      description: '',
      status: 'active',
      tools: [
        httpTool({ requires_approval: true, headers: { authorization: 'Bearer x' } }),
        { type: 'agent', name: 'ask', description: 'Asks.', agent_id: crypto.randomUUID() },
        { type: 'mcp', name: 'files', description: '', server_url: 'http://localhost:1/mcp', allowed_tools: ['read'] },
      ],
      output_schema: {
        type: 'object',
        properties: { input: { type: 'object' }, answer: { type: ['string', 'null'] } },
      },
      input_schema: { type: 'object', required: ['city'] },
      expose: ['mcp'],
      allow_input_requests: true,
      temperature: 0.5,
      max_output_tokens: 1_000,
      max_steps: 3,
      timeout_seconds: 10,
      budget_usd: 0.25,
      metadata: { a: [1, { b: null }] },
    }
    const { data } = await create(hosted)
    expect(data).toMatchObject(hosted)
    expect((await get(data.agent_id)).data).toEqual(data)
  })

  test('stores free-form metadata without changing any value', async () => {
    const metadata = '{"n":12345678901234567890,"f":1.0,"__proto__":{"x":1},"z":"\\u0000","s":"\\ud800"}'
    const { text, data } = await create(`{"name":"m","metadata":${metadata}}`)
    expect(text).toContain(`"metadata":${metadata}`)
    expect((await get(data.agent_id)).text).toContain(`"metadata":${metadata}`)
  })

  const rejected: [object, string][] = [
    [{}, 'name: required'],
    [{ name: '' }, 'name: expected at least 1 character'],
    [{ name: 'x'.repeat(201) }, 'name: expected at most 200 characters'],
    [{ name: 'a\0' }, 'name: expected text without the character U+0000'],
    [{ name: 'a', status: 'archived' }, 'status: expected one of active, paused'],
    [{ name: 'a', runtime_type: 'lambda' }, 'runtime_type: expected one of hosted, external'],
    [{ name: 'a', metadata: [] }, 'metadata: expected'],
    [{ name: 'a', metadata: null }, 'metadata: expected'],
    [{ name: 'a', agent_id: crypto.randomUUID() }, 'agent_id: unknown field'],
    [{ name: 'a', stale_after_seconds: 0 }, 'stale_after_seconds: expected'],
    [{ name: 'a', stale_after_seconds: 1.5 }, 'stale_after_seconds: expected'],
    [{ name: 'a', stale_after_seconds: '60' }, 'stale_after_seconds: expected'],
    [{ ...HOSTED, model: undefined }, 'model: required for a hosted agent'],
    [{ ...HOSTED, prompt: undefined }, 'prompt: required for a hosted agent'],
    [{ ...HOSTED, prompt: '' }, 'prompt: expected'],
    [{ ...HOSTED, model: null }, 'model: expected'],
    [{ ...HOSTED, temperature: 2.1 }, 'temperature: expected'],
    [{ ...HOSTED, max_output_tokens: 0 }, 'max_output_tokens: expected'],
    [{ ...HOSTED, max_steps: 0 }, 'max_steps: expected'],
    [{ ...HOSTED, timeout_seconds: 86_401 }, 'timeout_seconds: expected'],
    [{ ...HOSTED, budget_usd: 0 }, 'budget_usd: expected'],
    [{ ...HOSTED, allow_input_requests: 'yes' }, 'allow_input_requests: expected'],
    [{ ...HOSTED, input_schema: { type: 'objekt' } }, 'input_schema.type: expected one or several of'],
    [{ ...HOSTED, expose: ['http'] }, 'expose[0]: expected'],
    [{ ...HOSTED, expose: ['mcp', 'mcp'] }, 'expose: expected'],
    [{ ...HOSTED, stale_after_seconds: 60 }, 'stale_after_seconds: only an external agent has this'],
  ]
  test.each(rejected)('rejects %j', async (body, message) => {
    expectInvalid(await create(body), message)
  })

  const hostedOnly: [string, unknown][] = [
    ['model', 'm'],
    ['prompt', 'p'],
    ['tools', []],
    ['output_schema', { type: 'object' }],
    ['input_schema', { type: 'object' }],
    ['expose', []],
    ['allow_input_requests', false],
    ['temperature', 0],
    ['max_output_tokens', 1],
    ['max_steps', 1],
    ['timeout_seconds', 1],
    ['budget_usd', 1],
  ]
  test.each(hostedOnly)('rejects %s on an external agent, on create and on edit', async (field, value) => {
    expectInvalid(await create({ name: 'a', [field]: value }), `${field}: only a hosted agent has this`)
    expectInvalid(await patch(await app.newAgent(), { [field]: value }), `${field}: only a hosted agent has this`)
  })

  test('creates one agent when a request is retried with the same Idempotency-Key', async () => {
    const headers = { 'idempotency-key': 'one-agent' }
    const first = await create({ name: 'once' }, headers)
    expect((await create({ name: 'once' }, headers)).text).toBe(first.text)
    await app.sql`update idempotency_keys set status = null, response = null where idem_key = 'one-agent'`
    expect((await create({ name: 'once' }, headers)).data.agent_id).toBe(first.data.agent_id)
    const [row] = await app.sql`select count(*)::int as count from agents where name = 'once'`
    expect(row!.count).toBe(1)
  })
})

describe('tools', () => {
  const rejected: [unknown, string][] = [
    ['x', 'tools: expected an array'],
    [null, 'tools: expected an array'],
    [[7], 'tools[0]: expected an object; got 7'],
    [[{}], 'tools[0].type: expected one of http, agent, mcp; got nothing'],
    [[httpTool(), httpTool({ type: 'shell' })], 'tools[1].type: expected one of http, agent, mcp; got "shell"'],
    [[httpTool({ name: undefined })], 'tools[0].name: required'],
    [[httpTool({ name: 'a b' })], 'tools[0].name: expected 1 to 64 letters'],
    [[httpTool({ name: 'x'.repeat(65) })], 'tools[0].name: expected at most 64 characters'],
    [[httpTool(), httpTool()], 'tools[1].name: another tool is already called "look_up"'],
    [[httpTool({ name: 'request_input' })], 'tools[0].name: request_input is the name of a built-in tool'],
    [[httpTool({ description: undefined })], 'tools[0].description: required'],
    [[httpTool({ requires_approval: 'yes' })], 'tools[0].requires_approval: expected true or false'],
    [[httpTool({ method: 'TRACE' })], 'tools[0].method: expected one of GET, POST, PUT, PATCH, DELETE'],
    [[httpTool({ url: 'example.com' })], 'tools[0].url: expected an http or https URL'],
    [[httpTool({ url: 'file:///etc/passwd' })], 'tools[0].url: expected an http or https URL'],
    [[httpTool({ url: 'http://u:p@example.com/' })], 'tools[0].url: expected a URL without a user name'],
    [[httpTool({ headers: { 'a b': 'x' } })], 'tools[0].headers: expected names of HTTP headers'],
    [[httpTool({ headers: { a: 'x\r\ny: z' } })], 'tools[0].headers["a"]: expected the value of an HTTP header'],
    [[httpTool({ headers: { a: 1 } })], 'tools[0].headers.a: expected'],
    [[httpTool({ parameters: undefined })], 'tools[0].parameters: required'],
    [[httpTool({ parameters: { type: 'array' } })], 'tools[0].parameters.type: expected "object"'],
    [[httpTool({ agent_id: crypto.randomUUID() })], 'tools[0].agent_id: unknown field'],
    [[{ type: 'agent', name: 'a', description: '', agent_id: 'x' }], 'tools[0].agent_id: expected a UUID'],
    [[{ type: 'agent', name: 'a', description: '' }], 'tools[0].agent_id: required'],
    [[{ type: 'mcp', name: 'a', description: '', server_url: 'ws://x' }], 'tools[0].server_url: expected an http'],
    [
      [{ type: 'mcp', name: 'a', description: '', server_url: 'http://x', allowed_tools: 'all' }],
      'tools[0].allowed_tools: expected an array',
    ],
    [
      Array.from({ length: 129 }, (_, i) => httpTool({ name: `t${i}` })),
      'tools: expected an array of at most 128 items',
    ],
  ]
  test.each(rejected)('rejects %j', async (tools, message) => {
    expectInvalid(await create({ ...HOSTED, tools }), message)
  })
})

describe('output_schema', () => {
  const rejected: [unknown, string][] = [
    ['x', 'output_schema: expected'],
    [[], 'output_schema: expected'],
    [true, 'output_schema: expected'],
    [{ type: 'string' }, 'output_schema.type: expected "object" at the root'],
    [{ type: 'objekt' }, 'output_schema.type: expected one or several of'],
    [{ properties: { a: 7 } }, 'output_schema.properties.a: expected a JSON Schema'],
    [
      { properties: { a: { items: { type: 'int' } } } },
      'output_schema.properties.a.items.type: expected one or several',
    ],
    [{ properties: [] }, 'output_schema.properties: expected an object of schemas'],
    [{ required: 'a' }, 'output_schema.required: expected an array of different strings'],
    [{ required: ['a', 'a'] }, 'output_schema.required: expected an array of different strings'],
    [{ anyOf: [] }, 'output_schema.anyOf: expected a non-empty array of schemas'],
    [{ anyOf: [{}, { not: 1 }] }, 'output_schema.anyOf[1].not: expected a JSON Schema'],
    [{ enum: [] }, 'output_schema.enum: expected a non-empty array'],
    [{ patternProperties: { '[': {} } }, 'output_schema.patternProperties["["]: expected a regular expression'],
    [{ $defs: { x: { pattern: '(' } } }, 'output_schema.$defs.x.pattern: expected a regular expression'],
    [
      { properties: { a: { minLength: -1 } } },
      'output_schema.properties.a.minLength: expected an integer of at least 0',
    ],
    [{ properties: { a: { maximum: '9' } } }, 'output_schema.properties.a.maximum: expected a number'],
    [{ properties: { a: { multipleOf: 0 } } }, 'output_schema.properties.a.multipleOf: expected a number above 0'],
    [{ $ref: 7 }, 'output_schema.$ref: expected a string'],
    [{ dependentRequired: { a: [1] } }, 'output_schema.dependentRequired.a: expected an array'],
  ]
  test.each(rejected)('rejects %j', async (output_schema, message) => {
    expectInvalid(await create({ ...HOSTED, output_schema }), message)
  })

  test('accepts valid JSON Schema, unknown keywords included', async () => {
    const output_schema = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $defs: { money: { type: 'number', minimum: 0, multipleOf: 0.01 } },
      properties: {
        constructor: { $ref: '#/$defs/money' },
        list: { type: 'array', prefixItems: [true, false], items: { anyOf: [{ const: null }, { enum: [1, 'a'] }] } },
        any: true,
      },
      additionalProperties: false,
      required: ['list'],
      'x-vendor': [1],
    }
    const { data } = await create({ ...HOSTED, output_schema })
    expect(data.output_schema).toEqual(output_schema)
  })
})

describe('GET /api/v1/agents', () => {
  test('filters by status and runtime type, sorts newest first, paginates and omits archived agents', async () => {
    const { key } = await app.newWorkspace()
    const ids: string[] = []
    for (const body of [{ name: '0' }, { ...HOSTED, name: '1' }, { name: '2', status: 'paused' }, { name: '3' }])
      ids.push((await app.call('POST', PATH, { key, body })).data.agent_id)
    await app.call('DELETE', `${PATH}/${ids[3]}`, { key })
    const names = async (query: string) => {
      const { data } = await app.call('GET', `${PATH}?${query}`, { key })
      return { names: data.items.map((item: { name: string }) => item.name).join(''), next: data.next_cursor }
    }
    expect(await names('')).toEqual({ names: '210', next: null })
    expect((await names('status=paused')).names).toBe('2')
    expect((await names('status=active')).names).toBe('10')
    expect((await names('runtime_type=hosted')).names).toBe('1')
    expect((await names('runtime_type=external&status=active')).names).toBe('0')
    const first = await names('limit=2')
    expect(first.names).toBe('21')
    expect(await names(`limit=2&cursor=${first.next}`)).toEqual({ names: '0', next: null })
    expect((await names('status=archived')).names).toBe('3')
    for (const query of ['status=gone', 'runtime_type=x', 'limit=201', 'cursor=x', 'q=1'])
      expect(verdict(await app.call('GET', `${PATH}?${query}`, { key }))).toBe('400 VALIDATION_ERROR')
  })
})

describe('PATCH /api/v1/agents/:agent_id', () => {
  test('increments version only when an edit changes something', async () => {
    const { data } = await create({ name: 'a', metadata: { a: 1 } })
    app.clock.aheadMs += 1_000
    for (const body of [{}, { name: 'a' }, { description: null }, { metadata: { a: 1 }, status: 'active' }])
      expect((await patch(data.agent_id, body)).data).toEqual(data)
    const edited = await patch(data.agent_id, { name: 'b', status: 'paused', stale_after_seconds: 5 })
    expect(edited.data).toEqual({
      ...data,
      name: 'b',
      status: 'paused',
      stale_after_seconds: 5,
      version: 2,
      updated_at: expect.any(String),
    })
    expect(Date.parse(edited.data.updated_at)).toBeGreaterThan(Date.parse(data.updated_at))
    expect((await patch(data.agent_id, { metadata: { a: 2 } })).data.version).toBe(3)
    expect((await get(data.agent_id)).data).toMatchObject({ version: 3, metadata: { a: 2 }, name: 'b' })
  })

  test('edits every hosted field, and null clears nullable fields', async () => {
    const { data } = await create(HOSTED)
    const edit = {
      description: 'd',
      model: 'other',
      prompt: 'p',
      tools: [httpTool()],
      output_schema: { type: 'object' },
      input_schema: { type: 'object' },
      expose: ['mcp'],
      allow_input_requests: true,
      temperature: 1,
      max_output_tokens: 10,
      max_steps: 1,
      timeout_seconds: 1,
      budget_usd: 1,
    }
    expect((await patch(data.agent_id, edit)).data).toMatchObject({ ...edit, version: 2 })
    expect((await patch(data.agent_id, edit)).data.version).toBe(2)
    const nulls = {
      description: null,
      output_schema: null,
      input_schema: null,
      expose: null,
      temperature: null,
      max_output_tokens: null,
      budget_usd: null,
    }
    expect((await patch(data.agent_id, nulls)).data).toMatchObject({ ...edit, ...nulls, expose: [], version: 3 })
    for (const field of [
      'name',
      'status',
      'model',
      'prompt',
      'tools',
      'allow_input_requests',
      'max_steps',
      'timeout_seconds',
      'metadata',
    ])
      expectInvalid(await patch(data.agent_id, { [field]: null }), `${field}: expected`)
  })

  test('applies all concurrent edits', async () => {
    const id = await app.newAgent()
    await Promise.all(Array.from({ length: 8 }, (_, i) => patch(id, { name: `name ${i}` })))
    expect((await get(id)).data.version).toBe(9)
  })

  test('runtime_type is fixed at creation', async () => {
    const id = await app.newAgent()
    for (const runtime_type of ['hosted', 'external', null])
      expectInvalid(await patch(id, { runtime_type }), 'runtime_type: cannot be changed')
  })

  test('validates an edit like a create', async () => {
    const { data } = await create(HOSTED)
    expectInvalid(await patch(data.agent_id, { tools: [{}] }), 'tools[0].type: expected')
    expectInvalid(await patch(data.agent_id, { output_schema: { type: 'x' } }), 'output_schema.type: expected')
    expectInvalid(await patch(data.agent_id, { stale_after_seconds: 1 }), 'stale_after_seconds: only an external agent')
    expectInvalid(await patch(data.agent_id, { version: 7 }), 'version: unknown field')
    expect((await get(data.agent_id)).data).toEqual(data)
  })
})

describe('DELETE /api/v1/agents/:agent_id', () => {
  test('archives the agent, revokes its keys and creates no new ones', async () => {
    const id = await app.newAgent()
    const [one, other] = [await app.newAgentKey(id), await app.newAgentKey(id)]
    const bystander = await app.newAgentKey(await app.newAgent())
    expect((await app.call('POST', '/ingest', { key: one.key })).status).toBe(200)
    const { status, data } = await app.call('DELETE', `${PATH}/${id.toUpperCase()}`, { key: owner })
    expect([status, data]).toEqual([200, { agent_id: id, status: 'archived' }])
    for (const { key } of [one, other])
      expect(verdict(await app.call('POST', '/ingest', { key }))).toBe('401 UNAUTHENTICATED')
    expect((await app.call('POST', '/ingest', { key: bystander.key })).status).toBe(200)
    expect((await get(id)).data).toMatchObject({ agent_id: id, status: 'archived', version: 2 })
    expect(verdict(await patch(id, { name: 'b' }))).toBe('404 NOT_FOUND')
    expect(verdict(await app.call('DELETE', `${PATH}/${id}`, { key: owner }))).toBe('404 NOT_FOUND')
    expect(verdict(await app.call('POST', `${PATH}/${id}/keys`, { key: owner }))).toBe('404 NOT_FOUND')
    const { data: keys } = await app.call('GET', `/api/v1/keys?agent_id=${id}&status=revoked`, { key: owner })
    expect(keys.items).toHaveLength(2)
    const rows = await app.sql`select status from agents where agent_id = ${id}`
    expect(rows[0]!.status).toBe('archived')
  })

  test('restoring gives it its status back, not its keys; its name must be free', async () => {
    const { data: made } = await create({ name: 'restored', status: 'paused' })
    const id = made.agent_id
    const { key } = await app.newAgentKey(id)
    const restore = (agentId: string, as = owner) =>
      app.call('POST', `${PATH}/${agentId}/restore`, { key: as, body: {} })
    expect((await restore(id)).data).toEqual(made)
    await app.call('DELETE', `${PATH}/${id}`, { key: owner })
    const foreign = await app.newWorkspace()
    for (const [agentId, as] of [
      [id, foreign.key],
      [crypto.randomUUID(), owner],
    ] as const)
      expect(verdict(await restore(agentId, as))).toBe('404 NOT_FOUND')
    const { data: namesake } = await create({ name: 'restored' })
    const refused = await restore(id)
    expect([verdict(refused), refused.error?.reason]).toEqual(['409 CONFLICT', 'name_taken'])
    await app.call('DELETE', `${PATH}/${namesake.agent_id}`, { key: owner })
    const restored = await restore(id)
    expect(restored.data).toEqual({ ...made, version: 3, updated_at: restored.data.updated_at })
    expect((await get(id)).data).toEqual(restored.data)
    expect(verdict(await app.call('POST', '/ingest', { key }))).toBe('401 UNAUTHENTICATED')
    expect((await app.call('POST', '/ingest', { key: (await app.newAgentKey(id)).key })).status).toBe(200)
  })

  test('a key created while its agent is being archived does not work afterwards', async () => {
    for (let round = 0; round < 10; round++) {
      const id = await app.newAgent()
      const [made] = await Promise.all([
        app.call('POST', `${PATH}/${id}/keys`, { key: owner, body: {} }),
        app.call('DELETE', `${PATH}/${id}`, { key: owner }),
      ])
      if (made.status === 200)
        expect(verdict(await app.call('POST', '/ingest', { key: made.data.key }))).toBe('401 UNAUTHENTICATED')
      else expect(verdict(made)).toBe('404 NOT_FOUND')
    }
  })
})

describe('tenant isolation', () => {
  test('an agent of another workspace is NOT_FOUND', async () => {
    const tenant = await app.newWorkspace()
    const id = await app.newAgent({}, tenant.key)
    const agent = await app.newAgentKey(id, tenant.key)
    expect(verdict(await get(id))).toBe('404 NOT_FOUND')
    expect(verdict(await patch(id, { name: 'mine' }))).toBe('404 NOT_FOUND')
    expect(verdict(await app.call('DELETE', `${PATH}/${id}`, { key: owner }))).toBe('404 NOT_FOUND')
    expect((await app.call('POST', '/ingest', { key: agent.key })).status).toBe(200)
    const { text } = await app.call('GET', `${PATH}?limit=200`, { key: owner })
    expect(text).not.toContain(id)
  })

  test('an invalid UUID is rejected, naming the path parameter', async () => {
    expectInvalid(await get('42'), 'path.agent_id: expected a UUID')
  })
})
