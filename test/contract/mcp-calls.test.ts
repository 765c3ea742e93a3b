import { describe, expect, test } from 'bun:test'
import type { ContentBlock } from '@modelcontextprotocol/sdk/types.js'
import type { Caller } from '../../src/tenants/keys/schema.ts'
import { eventually } from '../support/eventually.ts'
import { callContext, mcpAgent } from '../support/mcp-agent.ts'
import { startMcpServer, textResult, tool } from '../support/mcp-server.ts'

/** Calls of MCP tools that succeed, or fail in the tool: sessions, results, secrets. */

const agent = await mcpAgent()

describe('a call', () => {
  for (const kind of [{}, { isJson: true }, { isStateless: true }, { isResumable: true }])
    test(`works with a server that is ${Object.keys(kind)[0] ?? 'the SDK default'}`, async () => {
      const server = startMcpServer({ tools: [tool('t')], call: ({ input }) => textResult(`got ${input.x}`), ...kind })
      const [t] = await agent.list(server)
      expect(await t?.call({ x: 1 }, callContext())).toEqual({ ok: true, output: 'got 1' })
    })

  test('sends its idempotency key', async () => {
    const keys: unknown[] = []
    const server = startMcpServer({
      tools: [tool('t')],
      call: ({ meta }) => textResult(String(keys.push(meta.idempotencyKey))),
    })
    const [t] = await agent.list(server)
    const context = callContext()
    await t?.call({}, context)
    expect(keys).toEqual([context.idempotencyKey])
  })

  test('shares one session with concurrent calls of the run', async () => {
    const waiting: (() => void)[] = []
    const server = startMcpServer({
      tools: [tool('t')],
      call: async ({ input }) => {
        await new Promise<void>((done) => waiting.push(done))
        return textResult(`answer ${input.n}`)
      },
    })
    const [t] = await agent.list(server)
    await eventually(() => server.sessions.size === 0)
    const calls = Array.from({ length: 10 }, (_, n) => t?.call({ n }, callContext()))
    await eventually(() => waiting.length === 10)
    expect(server.sessions.size).toBe(1)
    for (const done of waiting.reverse()) done()
    const outcomes = await Promise.all(calls)
    expect(outcomes).toEqual(outcomes.map((_, n) => ({ ok: true, output: `answer ${n}` })))
    expect(server.count('initialize')).toBe(2)
  })

  test('reuses its session for the next call, and ends it with the run', async () => {
    const server = startMcpServer({ tools: [tool('t')] })
    const run = new AbortController()
    const [t] = await agent.list(server, {}, { signal: run.signal })
    await t?.call({}, callContext())
    await t?.call({}, callContext())
    const ids = server.seen.flatMap(({ method, headers }) =>
      method === 'tools/call' ? [headers.get('mcp-session-id')] : [],
    )
    expect(ids[0]).toBe(ids[1] as string)
    expect(server.sessions.has(ids[0] as string)).toBe(true)
    run.abort(new Error('over'))
    await eventually(() => server.sessions.size === 0 && server.open() === 0)
    await expect(t?.call({}, callContext())).rejects.toThrow('over')
  })

  test('ends an idle session', async () => {
    const server = startMcpServer({ tools: [tool('t')] })
    const [t] = await agent.list(server, {}, { timeouts: { idleMs: 50 } })
    await t?.call({}, callContext())
    await eventually(() => server.sessions.size === 0)
    expect(await t?.call({}, callContext())).toMatchObject({ ok: true })
  })

  test('is repeated once when the server has lost the session', async () => {
    const server = startMcpServer({ tools: [tool('t')] })
    const [t] = await agent.list(server)
    await t?.call({}, callContext())
    server.forgetSessions()
    expect(await t?.call({}, callContext())).toEqual({ ok: true, output: 'called t' })
    server.options.intercept = (method) =>
      method === 'tools/call' ? Response.json({ error: 'no such session' }, { status: 404 }) : undefined
    expect(await t?.call({}, callContext())).toMatchObject({ ok: false, error: expect.stringContaining('HTTP 404') })
  })

  test.each([
    [
      'is sent again to a server that has not read it',
      { jsonrpc: '2.0', error: { code: -32000, message: 'No valid session ID' }, id: null },
      2,
    ],
    ['is not sent again when the tool speaks of a session', 'the chat session is full', 1],
    [
      'is not sent again when the answer is its own',
      { jsonrpc: '2.0', error: { code: -32000, message: 'session' }, id: 2 },
      1,
    ],
  ])('%s, and the next call has a new session', async (_, body, sent) => {
    const server = startMcpServer({ tools: [tool('t')] })
    const [t] = await agent.list(server)
    await t?.call({}, callContext())
    const before = server.count('tools/call')
    server.options.intercept = (method) => {
      if (method !== 'tools/call') return undefined
      delete server.options.intercept
      return typeof body === 'string' ? new Response(body, { status: 400 }) : Response.json(body, { status: 400 })
    }
    server.forgetSessions()
    expect(await t?.call({}, callContext())).toMatchObject({ ok: sent === 2 })
    expect(server.count('tools/call') - before).toBe(sent)
    expect(await t?.call({}, callContext())).toEqual({ ok: true, output: 'called t' })
  })

  test('gives the server no access to the model or the user', async () => {
    const server = startMcpServer({
      tools: [tool('t')],
      call: async ({ input, ask }) => {
        await ask(input.method as 'ping')
        return textResult('was answered')
      },
    })
    const [t] = await agent.list(server)
    for (const method of ['sampling/createMessage', 'roots/list'])
      expect(await t?.call({ method }, callContext())).toMatchObject({
        ok: false,
        error: expect.stringContaining('Method not found'),
      })
    expect(await t?.call({ method: 'ping' }, callContext())).toMatchObject({ ok: true })
  })
})

describe('a result', () => {
  async function resultOf(result: { content: ContentBlock[]; structuredContent?: object; isError?: boolean }) {
    const server = startMcpServer({ tools: [tool('t')], call: () => result as ReturnType<typeof textResult> })
    const [t] = await agent.list(server)
    return t?.call({}, callContext())
  }

  test('is the structured content if there is any', async () => {
    const structuredContent = { a: [1, { b: null }], ü: '\u2028' }
    expect(await resultOf({ content: [{ type: 'text', text: 'x' }], structuredContent })).toEqual({
      ok: true,
      output: structuredContent,
    })
  })

  test('is otherwise the text, with other content described', async () => {
    const outcome = await resultOf({
      content: [
        { type: 'text', text: 'one' },
        { type: 'audio', mimeType: 'audio/wav', data: Buffer.alloc(3000).toString('base64') },
        { type: 'resource', resource: { uri: 'file:///a.bin', blob: Buffer.alloc(10).toString('base64') } },
        { type: 'resource', resource: { uri: 'file:///a.txt', mimeType: 'text/plain', text: 'two' } },
        { type: 'resource_link', uri: 'https://example.com/', name: 'site' },
      ],
    })
    expect(outcome).toEqual({
      ok: true,
      output: [
        'one',
        '[audio, audio/wav, 3000 bytes, left out]',
        '[resource file:///a.bin, type unknown, 10 bytes, left out]',
        '[resource file:///a.txt, text/plain]\ntwo',
        '[link to https://example.com/, site]',
      ].join('\n'),
    })
  })

  test('that is empty is an empty text', async () => {
    expect(await resultOf({ content: [] })).toEqual({ ok: true, output: '' })
  })

  test("marked as an error is a failure with the tool's message", async () => {
    expect(await resultOf({ isError: true, content: [{ type: 'text', text: 'no such city' }] })).toEqual({
      ok: false,
      error: 'no such city',
    })
    expect(await resultOf({ isError: true, content: [] })).toMatchObject({
      ok: false,
      error: expect.stringMatching(/./),
    })
  })

  test('larger than 256 KiB is truncated and marked', async () => {
    for (const large of [
      { content: [{ type: 'text' as const, text: 'ü'.repeat(150_001) }] },
      { content: [], structuredContent: { text: 'ü'.repeat(150_000) } },
    ]) {
      const outcome = await resultOf(large)
      const output = (outcome as { output: string }).output
      expect(Buffer.byteLength(output)).toBeLessThan(256 * 1024 + 100)
      expect(output).toMatch(/\n\[cut off: the result has 3000\d\d bytes, this is its beginning\]$/)
      expect(output).not.toContain('\ufffd')
    }
  })
})

describe('a secret of the workspace', () => {
  const VALUE = 'sk-"quoted"/4711+secret'

  async function withSecret() {
    const workspaceId = await agent.addWorkspace()
    await agent.secrets.put({ workspaceId } as Caller, 'MCP_TOKEN', { value: VALUE }, undefined)
    return { workspaceId, definition: { headers: { authorization: 'Bearer {{secret:MCP_TOKEN}}' } } }
  }

  test('is sent with every request, and redacted in everything that comes back', async () => {
    const { workspaceId, definition } = await withSecret()
    const server = startMcpServer({
      tools: [tool('t', { description: `call with ${VALUE}` })],
      call({ input }) {
        const structuredContent = { echoed: `Bearer ${VALUE}`, encoded: btoa(VALUE), list: [encodeURIComponent(VALUE)] }
        if (input.how === 'structured') return { content: [], structuredContent }
        return { ...textResult(`text ${VALUE}`), isError: input.how === 'error' }
      },
    })
    const run = new AbortController()
    const [t] = await agent.list(server, definition, { workspaceId, signal: run.signal })
    const outcomes = await Promise.all(['structured', 'text', 'error'].map((how) => t?.call({ how }, callContext())))
    expect(outcomes).toEqual([
      { ok: true, output: { echoed: 'Bearer •••', encoded: '•••', list: ['•••'] } },
      { ok: true, output: 'text •••' },
      { ok: false, error: 'text •••' },
    ])
    expect(t?.description).toBe('call with •••')
    run.abort()
    await eventually(() => server.sessions.size === 0)
    for (const { headers } of server.seen) expect(headers.get('authorization')).toBe(`Bearer ${VALUE}`)
  })

  test('is redacted in the error text of a server', async () => {
    const { workspaceId, definition } = await withSecret()
    const server = startMcpServer({
      tools: [tool('t')],
      intercept: () => new Response(`${'x'.repeat(190)}${VALUE}`, { status: 500 }),
    })
    const listing = agent.list(server, definition, { workspaceId })
    await expect(listing).rejects.toThrow('HTTP 500')
    expect(String(await listing.catch(String))).not.toContain('sk-')
  })

  test('that does not exist fails the listing before anything is sent', async () => {
    const server = startMcpServer({ tools: [tool('t')] })
    const listing = agent.list(server, { headers: { authorization: '{{secret:NO_SUCH}}' } })
    await expect(listing).rejects.toThrow(/^MCP server 127\.0\.0\.1:\d+ of tool server: secret NO_SUCH does not exist/)
    expect(server.seen).toEqual([])
  })
})
