import { beforeAll, expect, test } from 'bun:test'
import { createServer } from 'node:net'
import { join } from 'node:path'
import type { CallableTool } from '../../src/hosted/tools/tool.ts'
import { eventually } from '../support/eventually.ts'
import { callContext, mcpAgent, named } from '../support/mcp-agent.ts'
import { atEnd } from '../support/teardown.ts'

/** Tests against `@modelcontextprotocol/server-everything`, a third-party server, in its own process. */

const SERVER = join(import.meta.dir, '../../node_modules/@modelcontextprotocol/server-everything/dist/index.js')

let tools: CallableTool[]
let output = ''
let life: AbortController

beforeAll(async () => {
  const port = await freePort()
  const server = Bun.spawn([process.execPath, SERVER, 'streamableHttp'], {
    env: { ...process.env, PORT: String(port) },
    stdout: 'pipe',
    stderr: 'ignore',
  })
  atEnd(async () => {
    server.kill('SIGKILL')
    await server.exited
  })
  collect(server.stdout)
  const agent = await mcpAgent()
  life = agent.life
  tools = await eventually(() => agent.list({ url: `http://127.0.0.1:${port}/mcp` }))
})

async function collect(stream: ReadableStream<Uint8Array>): Promise<void> {
  const decoder = new TextDecoder()
  for await (const chunk of stream) output += decoder.decode(chunk)
}

/** The server takes its port from the environment and does not report it. */
async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as { port: number }
  await new Promise((done) => server.close(done))
  return port
}

test('lists its tools with descriptions and schemas', () => {
  const echo = named(tools, 'echo')
  expect(echo.description).toBe('Echoes back the input string')
  expect(echo.parameters).toMatchObject({ type: 'object', properties: { message: { type: 'string' } } })
  expect(echo.requiresApproval).toBe(false)
})

test('returns text as text', async () => {
  expect(await named(tools, 'echo').call({ message: 'hello' }, callContext())).toEqual({
    ok: true,
    output: 'Echo: hello',
  })
})

test('progress keeps a long call alive', async () => {
  const outcome = await named(tools, 'trigger-long-running-operation').call({ duration: 0.4, steps: 4 }, callContext())
  expect(outcome).toMatchObject({ ok: true, output: expect.stringContaining('completed') })
})

test('ends the sessions of the listing and of the calls', async () => {
  life.abort()
  await eventually(() => output.split('Received session termination request').length === 3)
  expect(output.split('Session initialized with ID').length).toBe(3)
})
