import { beforeAll, expect, test } from 'bun:test'
import { newHostedAgent } from '../support/hosted.ts'
import { mcpClient } from '../support/mcp-agents.ts'
import { startModelServer } from '../support/model-server.ts'
import { startTestService, type TestService } from '../support/service.ts'

/** The list of tools when a workspace has many hosted agents that are tools (docs/mcp.md#hosted-agents-as-tools). */

/** A page, serialized. */
const PAGE_LENGTH_MAX = 600 * 1024

let service: TestService

beforeAll(async () => {
  service = await startTestService({ OPENAI_BASE_URL: startModelServer().url })
})

interface Tool {
  readonly name: string
  readonly description: string
  readonly inputSchema: { readonly type: string; readonly required?: readonly string[]; readonly properties?: object }
  readonly outputSchema?: object
}

async function pages(): Promise<Tool[][]> {
  const mcp = mcpClient(service)
  const found: Tool[][] = []
  let cursor: string | undefined
  do {
    const { result } = await mcp.request('tools/list', cursor === undefined ? {} : { cursor })
    expect(JSON.stringify(result).length).toBeLessThan(PAGE_LENGTH_MAX)
    found.push(result.tools)
    cursor = result.nextCursor
  } while (cursor !== undefined)
  return found
}

test('comes in pages of bounded size, each tool once, as the newest version describes it', async () => {
  const schema = (n: number) => ({ title: `${n}`, description: 'x'.repeat(10_000), properties: { n: { const: n } } })
  const agents = await Promise.all(
    Array.from({ length: 60 }, (_, n) =>
      newHostedAgent(service, {
        name: `Many ${n}`,
        expose: ['mcp'],
        input_schema: schema(n),
        output_schema: schema(n),
      }),
    ),
  )
  const listed = await pages()
  expect(listed.length).toBeGreaterThan(2)
  const many = listed.flat().filter(({ name }) => name.startsWith('many_'))
  expect(new Set(many.map(({ name }) => name)).size).toBe(60)
  expect(many).toHaveLength(60)
  for (const { inputSchema, outputSchema } of many)
    expect([inputSchema.type, outputSchema]).toEqual(['object', inputSchema])
  await service.api('PATCH', `/api/v1/agents/${agents[0]!.agentId}`, { description: 'Edited.' })
  expect((await pages()).flat().find(({ name }) => name === 'many_0')!.description).toBe('Edited.')
})

test('leaves out schemas that clients could not use, and names the placeholders of a prompt', async () => {
  const broken = { $ref: '#/$defs/none' }
  const long = { description: 'x'.repeat(70_000) }
  const elsewhere = { properties: { a: { $ref: 'https://example.com/schema' } } }
  const recursive = {
    $id: 'x',
    $defs: { 'a/b': { type: 'array', items: { $ref: '#' } } },
    properties: { a: { $ref: '#/$defs/a~1b' } },
  }
  const plain = { properties: { all: true, none: false } }
  const settings = [
    { name: 'Elsewhere', input_schema: elsewhere, output_schema: elsewhere },
    { name: 'Recursive', input_schema: recursive, output_schema: recursive },
    { name: 'Plain', input_schema: plain },
    { name: 'Broken', input_schema: broken, output_schema: broken },
    { name: 'Long', input_schema: long, output_schema: long },
    { name: 'Filled', prompt: 'You are {{ROLE}}, {{ROLE}} of {{PLACE}}.' },
    { name: 'Endless', prompt: Array.from({ length: 60 }, (_, n) => `{{P${n}}}`).join('') },
  ]
  for (const each of settings) await newHostedAgent(service, { ...each, expose: ['mcp'] })
  const tools = new Map((await pages()).flat().map((tool) => [tool.name, tool]))
  expect(tools.get('recursive')!.outputSchema).toEqual({ type: 'object', ...recursive })
  // Clients of earlier revisions take no other schemas of properties than objects.
  expect(tools.get('plain')!.inputSchema).toEqual({ type: 'object', properties: { all: {}, none: { not: {} } } })
  for (const name of ['elsewhere', 'broken', 'long']) {
    expect(tools.get(name)!.inputSchema).toEqual({ type: 'object' })
    expect(tools.get(name)!.outputSchema).toBeUndefined()
  }
  expect(tools.get('filled')!.inputSchema.required).toEqual(['input', 'ROLE', 'PLACE'])
  expect(tools.get('endless')!.inputSchema.required).toEqual(['input'])
})

test('refuses a cursor that is none, naming it', async () => {
  for (const cursor of ['x', '', 7, 'WzAsIiJd'.repeat(50)]) {
    const { error } = await mcpClient(service).request('tools/list', { cursor })
    expect(error).toMatchObject({ code: -32_602, message: expect.stringContaining('params.cursor: expected') })
  }
})
