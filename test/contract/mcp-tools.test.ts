import { describe, expect, test } from 'bun:test'
import { prefixed } from '../../src/hosted/tools/mcp-tool.ts'
import { eventually } from '../support/eventually.ts'
import { callContext, mcpAgent, named } from '../support/mcp-agent.ts'
import { startMcpServer, textResult, tool } from '../support/mcp-server.ts'

/** MCP servers as a source of tools (docs/hosted-agents.md#tools), over real HTTP through the real egress. */

const NAME = /^[a-zA-Z0-9_-]{1,64}$/

describe('names', () => {
  test('are valid for model providers and unique', async () => {
    const long = 'x'.repeat(70)
    const server = startMcpServer({
      tools: ['files.read', 'files_read', 'files/read', `${long}a`, `${long}b`, 'grüße', 'ok-1'].map((name) =>
        tool(name),
      ),
    })
    const agent = await mcpAgent()
    const names = (await agent.list(server)).map(({ name }) => name)
    for (const name of names) expect(name).toMatch(NAME)
    expect(new Set(names).size).toBe(7)
    expect(names.slice(0, 3)).toEqual(['files_read', 'files_read_2', 'files_read_3'])
    expect(names.at(-1)).toBe('ok-1')
  })

  test('calls the server with its own name for the tool', async () => {
    const server = startMcpServer({
      tools: [tool('files.read'), tool('files_read')],
      call: ({ name }) => textResult(name),
    })
    const agent = await mcpAgent()
    const tools = await agent.list(server)
    expect(await named(tools, 'files_read').call({}, callContext())).toEqual({ ok: true, output: 'files.read' })
    expect(await named(tools, 'files_read_2').call({}, callContext())).toEqual({ ok: true, output: 'files_read' })
  })

  test('a prefix distinguishes servers, and the name stays valid', () => {
    expect(prefixed({ name: 'github' }, 'search')).toBe('github__search')
    const [a, b] = ['a', 'b'].map((end) => prefixed({ name: 'g'.repeat(64) }, end))
    expect(a).toMatch(NAME)
    expect(a).not.toBe(b)
  })
})

describe('the list', () => {
  test('includes all pages, filtered by allowed_tools', async () => {
    const server = startMcpServer({ tools: Array.from({ length: 25 }, (_, i) => tool(`t${i}`)), pageSize: 4 })
    const agent = await mcpAgent()
    expect(await agent.list(server)).toHaveLength(25)
    const some = await agent.list(server, { allowed_tools: ['t3', 't24', 'nonexistent'] })
    expect(some.map(({ name }) => name)).toEqual(['t3', 't24'])
  })

  test('omits tools that run only as a task of the protocol', async () => {
    const server = startMcpServer({ tools: [tool('now'), tool('later', { execution: { taskSupport: 'required' } })] })
    const agent = await mcpAgent()
    expect((await agent.list(server)).map(({ name }) => name)).toEqual(['now'])
  })

  test('takes approval from the definition, and repeatability from the server', async () => {
    const server = startMcpServer({
      tools: [
        tool('plain'),
        tool('reads', { annotations: { readOnlyHint: true } }),
        tool('sets', { annotations: { idempotentHint: true } }),
        tool('adds', { annotations: { readOnlyHint: false, destructiveHint: false } }),
      ],
    })
    const agent = await mcpAgent()
    const tools = await agent.list(server, { requires_approval: true })
    expect(tools.map(({ isRepeatable }) => isRepeatable)).toEqual([false, true, true, false])
    expect(tools.every(({ requiresApproval }) => requiresApproval)).toBe(true)
  })

  test('truncates a long description', async () => {
    const server = startMcpServer({ tools: [tool('wordy', { description: 'w'.repeat(50_000) })] })
    const agent = await mcpAgent()
    expect((await agent.list(server))[0]?.description).toHaveLength(10_000)
  })

  test('too many tools, pages or descriptions are rejected with a hint to use allowed_tools, which works', async () => {
    const agent = await mcpAgent()
    const many = startMcpServer({ tools: Array.from({ length: 501 }, (_, i) => tool(`t${i}`)) })
    const paged = startMcpServer({ tools: Array.from({ length: 60 }, (_, i) => tool(`t${i}`)), pageSize: 1 })
    const wordy = startMcpServer({ tools: [tool('a'), tool('b', { description: 'w'.repeat(600_000) })] })
    for (const server of [many, paged, wordy])
      await expect(agent.list(server)).rejects.toThrow(
        /more than 500 tools or 512 KiB of descriptions; allowed_tools can/,
      )
    expect(await agent.list(many, { allowed_tools: ['t500'] })).toHaveLength(1)
    expect(await agent.list(wordy, { allowed_tools: ['a'] })).toHaveLength(1)
  })

  test('is fetched once a minute, and once for runs that start together', async () => {
    const server = startMcpServer({ tools: [tool('a')] })
    const agent = await mcpAgent()
    const workspaceId = crypto.randomUUID()
    await Promise.all(Array.from({ length: 20 }, () => agent.list(server, {}, { workspaceId })))
    expect(server.count('tools/list')).toBe(1)
    const start = Date.now()
    agent.clock.now = () => start + 59_000
    await agent.list(server, {}, { workspaceId })
    expect(server.count('tools/list')).toBe(1)
    agent.clock.now = () => start + 61_000
    await agent.list(server, {}, { workspaceId })
    expect(server.count('tools/list')).toBe(2)
  })

  test('is not shared between workspaces, headers or allowed_tools', async () => {
    const server = startMcpServer({ tools: [tool('a')] })
    const agent = await mcpAgent()
    const workspaceId = crypto.randomUUID()
    await agent.list(server, {}, { workspaceId })
    await agent.list(server, {})
    await agent.list(server, { headers: { authorization: 'Bearer 1' } }, { workspaceId })
    await agent.list(server, { headers: { authorization: 'Bearer 2' } }, { workspaceId })
    await agent.list(server, { allowed_tools: ['a'] }, { workspaceId })
    expect(server.count('tools/list')).toBe(5)
  })

  test('is fetched again after the server reports a change', async () => {
    const server = startMcpServer({ tools: [tool('before')], intercept: changedInAnswer })
    const agent = await mcpAgent()
    const workspaceId = crypto.randomUUID()
    const tools = await agent.list(server, {}, { workspaceId })
    server.options.tools = [tool('after')]
    await named(tools, 'before').call({}, callContext())
    const names = async () => (await agent.list(server, {}, { workspaceId })).map(({ name }) => name)
    await eventually(async () => expect(await names()).toEqual(['after']))
  })

  test('does not cache a failure', async () => {
    let isDown = true
    const server = startMcpServer({
      tools: [tool('a')],
      intercept: () => (isDown ? new Response('down', { status: 503 }) : undefined),
    })
    const agent = await mcpAgent()
    const workspaceId = crypto.randomUUID()
    await expect(agent.list(server, {}, { workspaceId })).rejects.toThrow('the server answers HTTP 503: down')
    isDown = false
    expect(await agent.list(server, {}, { workspaceId })).toHaveLength(1)
  })
})

/** The SDK's server sends the notification on a stream that is not open; others send it in the response to a call. */
function changedInAnswer(method: string | undefined): Response | undefined {
  if (method !== 'tools/call') return undefined
  const messages = [
    { jsonrpc: '2.0', method: 'notifications/tools/list_changed' },
    { jsonrpc: '2.0', id: 1, result: { content: [{ type: 'text', text: 'changed' }] } },
  ]
  const frames = messages.map((message) => `event: message\ndata: ${JSON.stringify(message)}\n\n`)
  return new Response(frames.join(''), { headers: { 'content-type': 'text/event-stream' } })
}
