import { newHostedAgent, untilStatus } from '../support/hosted.ts'
import { bySteps, type Turn } from '../support/model-server.ts'
import { type AnyLoopCase, hardObjects, type LoopContext, listOf, MIB, membersOf, sending } from './loop-case.ts'

const BODY_BYTES = 10 * MIB
const INPUT_BYTES = 3 * MIB
const PROMPT_LENGTH = 500_000

/** Schemas, and what they take. */
const SCHEMAS: readonly [string, object][] = [
  ['any object', { type: 'object' }],
  ['unique items', { type: 'object', additionalProperties: { uniqueItems: true } }],
  ['a pattern', { type: 'object', additionalProperties: { pattern: '^(a|b|ab)*(c|[^x])*$' } }],
  [
    'a recursive schema',
    {
      $ref: '#/$defs/a',
      $defs: {
        a: {
          anyOf: [{ type: 'null' }, { items: { $ref: '#/$defs/a' }, additionalProperties: { $ref: '#/$defs/a' } }],
        },
      },
    },
  ],
]

/** Agents, hosted runs, approvals and input requests (docs/hosted-agents.md). */
export async function hostedCases(context: LoopContext): Promise<AnyLoopCase[]> {
  return [...agentCases(), ...(await invokeCases(context)), ...outputCases(context), ...pauseCases(context)]
}

function agentCases(): AnyLoopCase[] {
  const agent = (name: string, rest: () => string, status?: 400) => ({
    name,
    route: 'POST /api/v1/agents',
    request: () =>
      sending('POST', '/api/v1/agents', `{"name":"a","runtime_type":"hosted","model":"m","prompt":"p",${rest()}}`),
    ...(status !== undefined && { status }),
  })
  const schema = (name: string, text: () => string, status?: 400) =>
    agent(name, () => `"output_schema":${text()}`, status)
  const tool = (n: number, parameters: string) =>
    `{"type":"http","name":"t${n}","description":"","method":"POST","url":"http://127.0.0.1:1/","parameters":${parameters}}`
  const nested = `${'{"not":'.repeat(100)}{}${'}'.repeat(100)}`
  return [
    ...Object.entries(hardObjects(BODY_BYTES - 200)).map(([name, metadata]) =>
      agent(`metadata, ${name}`, () => `"metadata":${metadata}`),
    ),
    agent(
      '128 tools',
      () =>
        `"tools":[${Array.from({ length: 128 }, (_, n) => tool(n, `{"type":"object","enum":[${listOf('1', 380)}]}`))}]`,
    ),
    agent(
      'tools of 80 KiB',
      () => `"tools":[${Array.from({ length: 120 }, (_, n) => tool(n, `{"description":"${'\\n'.repeat(40_000)}"}`))}]`,
    ),
    agent('tools, not objects', () => `"tools":[${listOf('[]', BODY_BYTES - 300)}]`, 400),
    schema('an enormous enum', () => `{"enum":[${listOf('1', 95_000)}]}`),
    schema('an endless enum', () => `{"enum":[${listOf('1', BODY_BYTES - 300)}]}`, 400),
    schema('required names', () => `{"required":[${Array.from({ length: 49_000 }, (_, n) => `"${n}"`)}]}`),
    schema('nested schemas', () => `{"allOf":[${listOf(nested, 300_000)}]}`),
    schema('properties', () => `{"properties":{${membersOf(400_000, 'true')}}}`),
    schema('a long pattern', () => `{"pattern":"${'(a|b)*'.repeat(BODY_BYTES / 6 - 50)}"}`, 400),
    schema(
      'many patterns',
      () =>
        `{"allOf":[${Array.from({ length: 12_000 }, (_, n) => `{"pattern":"${n}${'(?:a|b[c-z])*?'.repeat(50)}"}`)}]}`,
    ),
    schema(
      'names of patterns',
      () =>
        `{"patternProperties":{${Array.from({ length: 40_000 }, (_, n) => `"[^${n}]{1,9}${'\\\\p{L}'.repeat(30)}":true`)}}}`,
      400,
    ),
    schema(
      'references',
      () =>
        `{"$defs":{${Array.from({ length: 10_000 }, (_, n) => `"${n}":{"$ref":"#/$defs/${n + 1}"}`)}},"$ref":"#/$defs/0"}`,
    ),
  ]
}

async function invokeCases({ service, model }: LoopContext): Promise<AnyLoopCase[]> {
  model.script({ text: 'Hello' })
  const plain = await newHostedAgent(service)
  const placeholders = await newHostedAgent(service, { prompt: '{{A}}'.repeat(PROMPT_LENGTH / 5) })
  const invoke = (name: string, body: () => string, { agentId } = plain, status?: 400) => ({
    name,
    route: 'POST /api/v1/agents/{agent_id}/invoke',
    request: () => sending('POST', `/api/v1/agents/${agentId}/invoke`, `{${body()}}`),
    ...(status !== undefined && { status }),
  })
  const inputs = hardObjects(INPUT_BYTES)
  const checked = await Promise.all(
    SCHEMAS.map(async ([kind, input_schema]) => [kind, await newHostedAgent(service, { input_schema })] as const),
  )
  const message = '{"role":"user","content":"'
  return [
    ...Object.entries(inputs).map(([name, input]) => invoke(`input, ${name}`, () => `"input":${input}`)),
    ...checked.flatMap(([kind, agent]) =>
      Object.entries(inputs).map(([name, input]) =>
        invoke(`input of ${kind}, ${name}`, () => `"input":${input}`, agent),
      ),
    ),
    invoke('a message of escapes', () => `"input":{"message":"${'\\n'.repeat(INPUT_BYTES / 2 - 100)}"}`),
    invoke('messages', () => `"input":{${listOf('"message":"a"', INPUT_BYTES - 100)}}`),
    invoke('history', () => `"history":[${Array(2_000).fill(`${message}${'\\n'.repeat(750)}"}`)}]`),
    invoke('endless history', () => `"history":[${listOf(`${message}"}`, BODY_BYTES - 100)}]`, plain, 400),
    invoke(
      'prompt_variables',
      () => `"prompt_variables":{${Array.from({ length: 500 }, (_, n) => `"k${n}":"${'\\n'.repeat(10_000)}"`)}}`,
    ),
    invoke('100,000 placeholders', () => '"prompt_variables":{"A":"0123456789"}', placeholders),
    invoke('an endless prompt', () => `"prompt_variables":{"A":"${'a'.repeat(900_000)}"}`, placeholders, 400),
  ]
}

/** What a model answers is not the caller's, but its prompt is. */
function outputCases({ service, model }: LoopContext): AnyLoopCase[] {
  const answered = (name: string, text: string, settings: object): AnyLoopCase => ({
    name,
    route: 'POST /api/v1/agents/{agent_id}/invoke',
    async run() {
      model.script({ text: [text] })
      const agent = await newHostedAgent(service, { max_steps: 1, timeout_seconds: 60, ...settings })
      const { status } = await agent.invoke({})
      model.script({ text: 'Hello' })
      return { sent: text.length, status }
    },
  })
  const texts = { ...hardObjects(2 * MIB), 'one long text': `{"a":"${'ab'.repeat(MIB - 10)}"}` }
  return SCHEMAS.flatMap(([kind, output_schema]) =>
    Object.entries(texts).map(([name, text]) => answered(`output of ${kind}, ${name}`, text, { output_schema })),
  )
}

function pauseCases({ service, model }: LoopContext): AnyLoopCase[] {
  const tool = {
    type: 'http',
    name: 'refund',
    description: 'x',
    requires_approval: true,
    method: 'POST',
    url: 'http://127.0.0.1:1/',
    parameters: {},
  }
  const turns = (name: string, args: object): Turn[] => [{ toolCalls: [{ name, arguments: args }] }, { text: 'Done' }]
  const decided = (
    route: string,
    list: string,
    idOf: string,
    settings: object,
    script: Turn[],
    name: string,
    body: string,
  ): AnyLoopCase => ({
    name,
    route,
    // Edited arguments of too many values, or with numbers that cannot be passed on exactly, are refused.
    ...(name.startsWith('edited_input') && { status: 'any' }),
    async run() {
      model.script(bySteps(script))
      const agent = await newHostedAgent(service, settings)
      const { data } = await agent.invoke({ background: true })
      await untilStatus(service, data.run_id, 'awaiting_approval', 'awaiting_input')
      const { data: page } = await service.api('GET', `/api/v1/${list}?run_id=${data.run_id}`)
      const action = route.split('/').at(-1)
      const { status } = await service.api('POST', `/api/v1/${list}/${page.items[0][idOf]}/${action}`, body)
      model.script({ text: 'Hello' })
      return { sent: body.length, status }
    },
  })
  const approve = 'POST /api/v1/approvals/{approval_id}/approve'
  return [
    ...Object.entries(hardObjects(INPUT_BYTES)).map(([name, input]) =>
      decided(
        approve,
        'approvals',
        'approval_id',
        { tools: [tool] },
        turns('refund', {}),
        `edited_input, ${name}`,
        `{"edited_input":${input}}`,
      ),
    ),
    decided(
      approve.replace('/approve', '/reject'),
      'approvals',
      'approval_id',
      { tools: [tool] },
      turns('refund', {}),
      'a long comment',
      `{"comment":"${'\\n'.repeat(10_000)}"}`,
    ),
    decided(
      'POST /api/v1/input-requests/{request_id}/answer',
      'input-requests',
      'request_id',
      { allow_input_requests: true },
      turns('request_input', { question: 'q' }),
      'a long answer',
      `{"answer":"${'\\u00e9'.repeat(100_000)}"}`,
    ),
  ]
}
