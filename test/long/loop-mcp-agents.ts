import { newTenant } from '../support/feeds.ts'
import { newHostedAgent, untilStatus } from '../support/hosted.ts'
import { accept, type Mcp, mcpClient, type RpcAnswer } from '../support/mcp-agents.ts'
import { bySteps, type Turn } from '../support/model-server.ts'
import { type AnyLoopCase, hardObjects, type LoopContext, listOf, MIB, membersOf } from './loop-case.ts'

const BODY_BYTES = 10 * MIB - 2_000
/** Of a run and of a call. */
const INPUT_BYTES = 3 * MIB - 100
const OUTPUT_BYTES = 2 * MIB
/** Agents in a list of tools, and the longest schema that is shown. */
const [AGENTS, SCHEMA_LENGTH] = [100, 48_000]
/** Approvals that a task shows, and the longest arguments that it shows. */
const [PAUSES, SHOWN_LENGTH] = [50, 64_000]

/** Schemas that are hard to show, each in another way. */
const SCHEMAS: Readonly<Record<string, string>> = {
  'values in schemas': `{"properties":{"a":{"enum":[${listOf('1', SCHEMA_LENGTH)}]}}}`,
  'properties in schemas': `{"properties":{${properties('{}')}}}`,
  'references in schemas': `{"$defs":{"a":{}},"properties":{${properties('{"$ref":"#/$defs/a"}')}}}`,
}

/** Sends what is measured. */
type Send = () => Promise<RpcAnswer>

/** Hosted agents as tools and tasks of the MCP server (docs/mcp.md#hosted-agents-as-tools). */
export function mcpAgentCases({ service, model }: LoopContext): AnyLoopCase[] {
  const mcp = mcpClient(service)
  /** @param prepared makes what the request is about */
  const measured = (name: string, sent: number, prepared: () => Promise<Send>): AnyLoopCase => {
    let send: Send
    return {
      ...{ name, route: 'POST /mcp', status: 'any' },
      async prepare() {
        send = await prepared()
      },
      run: async () => ({ sent, status: (await send()).status }),
    }
  }
  let names = 0
  async function toolOf(turns: readonly Turn[], settings: object = {}) {
    model.script(bySteps(turns))
    const name = `loop_${++names}`
    await newHostedAgent(service, { name, expose: ['mcp'], timeout_seconds: 120, ...settings })
    return name
  }
  /** A task that waits for approvals of such calls, with their ids. */
  async function waiting(inputs: readonly object[]) {
    const tool = { type: 'http', name: 'refund', description: 'x', requires_approval: true, method: 'POST' }
    const tools = [{ ...tool, url: 'http://127.0.0.1:1/', parameters: {} }]
    const toolCalls = inputs.map((input, n) => ({ name: 'refund', arguments: input, id: `c${n}` }))
    const { result } = await mcp.call(await toolOf([{ toolCalls }, { text: 'Done' }], { tools }), { input: 'x' })
    await untilStatus(service, result.taskId, 'awaiting_approval')
    const { data } = await service.api('GET', `/api/v1/approvals?run_id=${result.taskId}`)
    return { taskId: result.taskId as string, pauseId: data.items[0].approval_id as string }
  }
  const list = (name: string, schema: string) =>
    measured(`a list of agents, ${name}`, 0, async () => {
      const tenant = await newTenant(service)
      // They differ, so that none is compiled already.
      const schemaOf = () => ({ title: crypto.randomUUID(), ...JSON.parse(schema) })
      for (let n = 0; n < AGENTS; n++) {
        const schemas = { input_schema: schemaOf(), output_schema: schemaOf() }
        await newHostedAgent({ ...service, ...tenant }, { name: `agent ${n}`, expose: ['mcp'], ...schemas })
      }
      const its: Mcp = mcpClient(tenant)
      return () => its.request('tools/list')
    })
  const ended = (name: string, output: string, settings: object) =>
    measured(`the result of a task, ${name}`, output.length, async () => {
      const tool = await toolOf([{ text: [output] }], { max_steps: 1, ...settings })
      const { result } = await mcp.call(tool, { input: 'x' }, { capabilities: {} })
      model.script({ text: 'Hello' })
      return () => mcp.task(result._meta.run_id)
    })
  const updated = (name: string, response: string) =>
    measured(`tasks/update, ${name}`, response.length, async () => {
      const { taskId, pauseId } = await waiting([{}])
      return () => mcp.update(taskId, { [pauseId]: JSON.parse(response) })
    })
  return [
    ...Object.entries(SCHEMAS).map(([name, schema]) => list(name, schema)),
    ...Object.entries(hardObjects(OUTPUT_BYTES)).flatMap(([name, output]) => [
      ended(`an object, ${name}`, output, { output_schema: { type: 'object' } }),
      ended(`text, ${name}`, output, {}),
    ]),
    measured('a task with many approvals', 0, async () => {
      const text = '\\n'.repeat(SHOWN_LENGTH / 2)
      const { taskId } = await waiting(Array.from({ length: PAUSES }, () => ({ text })))
      return () => mcp.task(taskId)
    }),
    ...Object.entries(hardObjects(BODY_BYTES)).map(([name, value]) =>
      updated(`content, ${name}`, `{"action":"accept","content":${value}}`),
    ),
    ...Object.entries(hardObjects(INPUT_BYTES)).flatMap(([name, value]) => [
      updated(`edited_input, ${name}`, JSON.stringify(accept({ confirm: true, edited_input: value }))),
      measured(`arguments of an agent, ${name}`, value.length, async () => {
        const tool = await toolOf([{ text: 'Hello' }], { input_schema: { type: 'object' } })
        return () => mcp.call(tool, JSON.parse(value))
      }),
    ]),
    ...['tasks/get', 'tasks/update', 'tasks/cancel'].map((method) =>
      measured(`${method}, as many members as are read`, 0, async () => {
        const taskId = crypto.randomUUID()
        const inputResponses = JSON.parse(`{${membersOf(BODY_BYTES, '{}').split(',').slice(0, 49_000)}}`)
        return () => mcp.request(method, { taskId, inputResponses })
      }),
    ),
  ]
}

function properties(schema: string): string {
  const max = Math.min(450, Math.floor(SCHEMA_LENGTH / (schema.length + 8)))
  return Array.from({ length: max }, (_, n) => `"p${n}":${schema}`).join()
}
