import { describe, expect, test } from 'bun:test'
import { McpUnavailable } from '../../src/hosted/tools/mcp-lists.ts'
import type { CallableTool } from '../../src/hosted/tools/tool.ts'
import { eventually } from '../support/eventually.ts'
import { callContext, type ListOptions, mcpAgent } from '../support/mcp-agent.ts'
import { type McpServerOptions, startMcpServer, textResult, tool } from '../support/mcp-server.ts'
import { atEnd } from '../support/teardown.ts'

/** MCP servers that are down, slow, broken, hostile or not MCP servers: always a clear error, and nothing left open. */

const agent = await mcpAgent()
const never = new Promise<never>(() => {})
const SHORT_TIMEOUTS = { openMs: 150, silenceMs: 150, closeMs: 100 }

function rpc(id: number, result: unknown): Response {
  return Response.json({ jsonrpc: '2.0', id, result })
}

function json(value: object): string {
  const text = JSON.stringify(value)
  return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`
}

function stream(chunks: () => Iterable<string>): Response {
  const body = chunks()[Symbol.iterator]()
  const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    const { done, value } = body.next()
    if (done === true) controller.close()
    else controller.enqueue(Buffer.from(value))
  }
  return new Response(new ReadableStream({ pull }), { headers: { 'content-type': 'text/event-stream' } })
}

const initialized = {
  protocolVersion: '2025-06-18',
  capabilities: { tools: {} },
  serverInfo: { name: 's', version: '1' },
}

describe('listing fails with a clear error for', () => {
  type Answer = NonNullable<McpServerOptions['intercept']>
  const onList = (answer: () => Response | Promise<Response>): Answer => {
    return (method) => (method === 'tools/list' ? answer() : undefined)
  }
  const cases: [what: string, says: RegExp, answer: Answer][] = [
    [
      'a web page',
      /something that is not MCP/,
      () => new Response('<html>', { headers: { 'content-type': 'text/html' } }),
    ],
    ['a missing page', /answers HTTP 404$/, () => new Response('<h1>Not found</h1>', { status: 404 })],
    ['a wrong key', /refuses the credentials in the headers \(HTTP 401\)/, () => new Response('', { status: 401 })],
    [
      'a key without permission',
      /refuses the credentials in the headers \(HTTP 403\)/,
      () => new Response('', { status: 403 }),
    ],
    [
      'an internal server error',
      /answers HTTP 500: database is away$/,
      () => new Response('database is away', { status: 500 }),
    ],
    ['too many requests', /answers HTTP 429: slow down$/, () => new Response('slow down', { status: 429 })],
    ['a redirect', /redirects to http:\/\/169\.254\.169\.254\//, () => Response.redirect('http://169.254.169.254/')],
    [
      'malformed JSON',
      /something that is not MCP/,
      () => new Response('{', { headers: { 'content-type': 'application/json' } }),
    ],
    ['JSON of another kind', /something that is not MCP/, () => Response.json({ hello: 'world' })],
    [
      'an unknown version',
      /something that is not MCP/,
      () => rpc(0, { ...initialized, protocolVersion: '1999-01-01' }),
    ],
    ['an answer without content', /ended before the result came/, () => new Response(null, { status: 202 })],
    ['a stream without an answer', /ended before the result came/, () => stream(() => [': nothing\n\n'])],
    ['an answer to another request', /ended before the result came/, () => rpc(77, initialized)],
    ['silence', /did not answer in time/, () => never],
    ['an endless stream', /larger than 4194304 bytes/, () => stream(endless)],
    ['an endless list', /larger than 4194304 bytes/, onList(() => stream(endless))],
    ['a list that is not a list', /something that is not MCP/, onList(() => rpc(1, { tools: 'none' }))],
    ['a tool without schema', /something that is not MCP/, onList(() => rpc(1, { tools: [{ name: 'x' }] }))],
    ['a silent list', /did not answer in time/, onList(() => never)],
    [
      'a server without tools',
      /the server says: Method not found/,
      onList(() => Response.json({ jsonrpc: '2.0', id: 1, error: { code: -32601, message: 'Method not found' } })),
    ],
  ]
  for (const [what, says, intercept] of cases)
    test.concurrent(what, async () => {
      const server = startMcpServer({ tools: [tool('t')], isStateless: true, intercept })
      const timeouts = says.source.includes('in time') ? SHORT_TIMEOUTS : { closeMs: 100 }
      const failure = await agent.list(server, {}, { timeouts }).catch((error: unknown) => error)
      expect(failure).toBeInstanceOf(McpUnavailable)
      expect(String(failure)).toMatch(says)
      expect(String(failure)).toStartWith(`McpUnavailable: MCP server ${new URL(server.url).host} of tool server: `)
      if (!says.source.includes('in time')) await eventually(() => server.open() === 0)
    })

  function* endless() {
    for (;;) yield `data: ${'x'.repeat(64 * 1024)}\n`
  }

  test('a port that nothing listens on', async () => {
    const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() })
    const url = server.url.href
    await server.stop(true)
    await expect(agent.list({ url })).rejects.toThrow('127.0.0.1 refuses connections')
  })

  test('a private address', async () => {
    const server = startMcpServer({ tools: [tool('t')] })
    const listing = agent.list(server, {}, { allow: '192.0.2.1' })
    await expect(listing).rejects.toThrow('127.0.0.1 is not a public address')
    expect(server.seen).toEqual([])
  })

  test('a run that ends, without waiting', async () => {
    const server = startMcpServer({ tools: [], intercept: () => never })
    const run = new AbortController()
    const listing = agent.list(server, {}, { signal: run.signal, timeouts: SHORT_TIMEOUTS })
    await eventually(() => server.seen.length === 1)
    run.abort(new Error('run was cancelled'))
    await expect(listing).rejects.toThrow('run was cancelled')
  })
})

describe('a call', () => {
  async function withTool(options: Omit<McpServerOptions, 'tools'>, listing: ListOptions = {}) {
    const server = startMcpServer({ tools: [tool('t')], ...options })
    const [t] = await agent.list(server, {}, listing)
    return { server, t: t as CallableTool }
  }

  test('times out when the server goes silent', async () => {
    const { server, t } = await withTool({ call: () => never }, { timeouts: { silenceMs: 150 } })
    expect(await t.call({}, callContext())).toEqual({ ok: false, error: 'the server did not answer in time' })
    await eventually(() => server.open() === 0)
  })

  test('may last as long as it reports progress, within a limit', async () => {
    const call: McpServerOptions['call'] = async ({ progress, input, signal }) => {
      const endMs = performance.now() + Number(input.ms)
      for (let i = 0; performance.now() < endMs && !signal.aborted; i++) {
        await progress(i)
        await Bun.sleep(20)
      }
      return textResult('done')
    }
    const patient = await withTool({ call }, { timeouts: { silenceMs: 1_000, requestMs: 60_000 } })
    expect(await patient.t.call({ ms: 1_200 }, callContext())).toEqual({ ok: true, output: 'done' })
    const limited = await withTool({ call }, { timeouts: { silenceMs: 60_000, requestMs: 500 } })
    expect(await limited.t.call({ ms: 600_000 }, callContext())).toEqual({
      ok: false,
      error: 'the server did not answer in time',
    })
  })

  test('that is aborted throws at once, notifies the server and leaves nothing open', async () => {
    let hasCancelled = false
    const call: McpServerOptions['call'] = ({ signal }) => {
      signal.addEventListener('abort', () => {
        hasCancelled = true
      })
      return never
    }
    const { server, t } = await withTool({ call })
    const stop = new AbortController()
    const outcome = t.call({}, callContext(stop.signal))
    await eventually(() => server.count('tools/call') === 1)
    stop.abort(new Error('run was cancelled'))
    await expect(outcome).rejects.toThrow('run was cancelled')
    await eventually(() => hasCancelled && server.open() === 0)
    await expect(t.call({}, callContext(stop.signal))).rejects.toThrow('run was cancelled')
    expect(server.count('tools/call')).toBe(1)
  })

  test('ends with its run: the server is notified and the session ends', async () => {
    const run = new AbortController()
    const { server, t } = await withTool({ call: () => never }, { signal: run.signal })
    const outcome = t.call({}, callContext())
    await eventually(() => server.count('tools/call') === 1)
    run.abort(new Error('lease lost'))
    await expect(outcome).rejects.toThrow('lease lost')
    await eventually(() => server.count('notifications/cancelled') === 1)
    await eventually(() => server.sessions.size === 0 && server.open() === 0)
  })

  test('resumes a broken stream if the server supports it', async () => {
    const call: McpServerOptions['call'] = async ({ breakStream, signal }) => {
      breakStream()
      await eventually(() => server.seen.some(({ headers }) => headers.has('last-event-id')))
      return textResult(signal.aborted ? 'aborted' : 'resumed')
    }
    const { server, t } = await withTool({ isResumable: true, call })
    expect(await t.call({}, callContext())).toEqual({ ok: true, output: 'resumed' })
    expect(server.count('tools/call')).toBe(1)
  })

  test('fails after two attempts to resume a stream', async () => {
    const { server, t } = await withTool({
      isResumable: true,
      call: ({ breakStream }) => {
        breakStream()
        return never
      },
      intercept: (_, { method }) => (method === 'GET' ? new Response('no', { status: 500 }) : undefined),
    })
    expect(await t.call({}, callContext())).toEqual({
      ok: false,
      error: 'the connection broke off and could not be resumed',
    })
    expect(server.seen.filter(({ http }) => http === 'GET')).toHaveLength(2)
  })

  test('fails when the connection is cut', async () => {
    const answers: Record<string, string> = {
      initialize: json({ jsonrpc: '2.0', id: 0, result: initialized }),
      'notifications/initialized': 'HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n',
      'tools/list': json({ jsonrpc: '2.0', id: 1, result: { tools: [tool('t')] } }),
      'tools/call': 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 900\r\n\r\ndata: {"js',
    }
    const sockets = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: {
        data(socket, bytes) {
          const method = /"method":"([^"]+)"/.exec(bytes.toString())?.[1] ?? ''
          socket.write(answers[method] ?? '')
          if (method === 'tools/call') socket.end()
        },
      },
    })
    atEnd(async () => sockets.stop(true))
    const [t] = await agent.list({ url: `http://127.0.0.1:${sockets.port}/` })
    expect(await t?.call({}, callContext())).toEqual({ ok: false, error: 'the answer of 127.0.0.1 broke off' })
  })

  test('fails beyond 4 MiB, while others continue', async () => {
    const { server, t } = await withTool({
      call: ({ input }) => textResult(input.big === true ? 'x'.repeat(5_000_000) : 'small'),
    })
    const outcomes = await Promise.all([true, false].map((big) => t.call({ big }, callContext())))
    expect(outcomes).toEqual([
      { ok: false, error: 'the answer of 127.0.0.1 is larger than 4194304 bytes' },
      { ok: true, output: 'small' },
    ])
    await eventually(() => server.open() === 0)
  })

  test("fails with the server's error message", async () => {
    const { t } = await withTool({
      call: () => {
        throw new Error('quota exceeded')
      },
    })
    expect(await t.call({}, callContext())).toEqual({ ok: false, error: 'the server says: quota exceeded' })
  })

  test('fails clearly while the server is down, and works once it is back', async () => {
    let isAway = false
    const { t } = await withTool({
      intercept: () => (isAway ? new Response('restarting', { status: 503 }) : undefined),
    })
    isAway = true
    const away = { ok: false, error: 'the server answers HTTP 503: restarting' }
    expect(await t.call({}, callContext())).toEqual(away as never)
    isAway = false
    expect(await t.call({}, callContext())).toMatchObject({ ok: true })
  })

  test('fails together with all calls that wait for the same session', async () => {
    let isAway = false
    const { server, t } = await withTool({
      intercept: (method) => (isAway && method === 'initialize' ? new Response('away', { status: 503 }) : undefined),
    })
    isAway = true
    const outcomes = await Promise.all([1, 2, 3].map(() => t.call({}, callContext())))
    for (const outcome of outcomes) expect(outcome).toMatchObject({ ok: false })
    expect(server.count('initialize')).toBe(2)
  })

  test('does not wait for a server that does not answer the end of the session', async () => {
    const run = new AbortController()
    const { server, t } = await withTool(
      { intercept: (_, { method }) => (method === 'DELETE' ? never : undefined) },
      { signal: run.signal, timeouts: { closeMs: 100 } },
    )
    await t.call({}, callContext())
    run.abort()
    await eventually(() => server.open() === 0)
  })
})
