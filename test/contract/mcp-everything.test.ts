import { beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { CallableTool } from '../../src/hosted/tools/tool.ts'
import { eventually } from '../support/eventually.ts'
import { callContext, mcpAgent, named } from '../support/mcp-agent.ts'
import { collectOutput } from '../support/processes.ts'
import { freePort } from '../support/service.ts'
import { atEnd } from '../support/teardown.ts'

/** Tests against `@modelcontextprotocol/server-everything`, a third-party server, in its own process. */

const SERVER = join(import.meta.dir, '../../node_modules/@modelcontextprotocol/server-everything/dist/index.js')

let tools: CallableTool[]
let printed: { readonly stdout: string }
let life: AbortController

beforeAll(async () => {
  // The server takes its port from the environment and does not report it.
  const port = freePort()
  const server = Bun.spawn([process.execPath, SERVER, 'streamableHttp'], {
    env: { ...process.env, PORT: String(port) },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  atEnd(async () => {
    server.kill('SIGKILL')
    await server.exited
  })
  ;({ printed } = collectOutput(server))
  const agent = await mcpAgent()
  life = agent.life
  tools = await eventually(() => agent.list({ url: `http://127.0.0.1:${port}/mcp` }))
})

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
  await eventually(() => printed.stdout.split('Received session termination request').length === 3)
  expect(printed.stdout.split('Session initialized with ID').length).toBe(3)
})
