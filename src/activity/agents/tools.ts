import { Kind, Type, TypeRegistry } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { t } from 'elysia'
import { invalid, invalidAll } from '../../base/errors.ts'
import { Body, Described, Named, OneOf, Text, Uuid } from '../../base/http/schema.ts'
import { shown, validationProblems } from '../../base/http/validation-message.ts'
import { checkJsonSchema } from './json-schema.ts'

/** Tools of a hosted agent (docs/hosted-agents.md#tools), as they are defined; `hosted/tools/` executes them. */

const TOOLS_MAX = 128
const DESCRIPTION_LENGTH_MAX = 10_000
const URL_LENGTH_MAX = 4_000
const HEADERS_MAX = 50
const HEADER_LENGTH_MAX = 8_000
const ALLOWED_TOOLS_MAX = 500
/** What model providers accept as the name of a function. */
const TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/
/** Built in, for agents with `allow_input_requests`. */
const RESERVED_NAME = 'request_input'
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}$/
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

const common = {
  name: Text({
    minLength: 1,
    maxLength: 64,
    description: 'Letters, digits, `_` and `-`; unique among the tools of the agent.',
  }),
  description: Text({ maxLength: DESCRIPTION_LENGTH_MAX, description: 'Tells the model what the tool is for.' }),
  requires_approval: t.Optional(t.Boolean({ description: 'A person must approve each call. Default false.' })),
}
const Url = Text({ minLength: 1, maxLength: URL_LENGTH_MAX, description: 'http or https.' })
const Headers = t.Record(t.String(), Text({ maxLength: HEADER_LENGTH_MAX }), {
  maxProperties: HEADERS_MAX,
  description: 'Headers to send, by name. `{{secret:NAME}}` stands for a secret of the workspace.',
})

const HttpTool = Named(
  'HttpTool',
  Body({
    ...common,
    type: t.Literal('http', { description: 'A call of an HTTP service.' }),
    parameters: t.Record(t.String(), t.Unknown(), { description: 'JSON Schema of the arguments, an object.' }),
    method: OneOf(
      ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
      'With GET, the arguments go into the query string; otherwise into a JSON body.',
    ),
    url: Url,
    headers: t.Optional(Headers),
  }),
)
const AgentTool = Named(
  'AgentTool',
  Body({
    ...common,
    type: t.Literal('agent', { description: 'A run of another hosted agent of the workspace.' }),
    agent_id: Described(Uuid, 'That agent.'),
  }),
)
const McpTool = Named(
  'McpTool',
  Body({
    ...common,
    type: t.Literal('mcp', { description: 'The tools of a Model Context Protocol server.' }),
    server_url: Url,
    allowed_tools: t.Optional(
      t.Array(Text({ minLength: 1, maxLength: 200 }), {
        maxItems: ALLOWED_TOOLS_MAX,
        description: 'Names of the tools that the model may call; default all.',
      }),
    ),
    headers: t.Optional(Headers),
  }),
)
const SCHEMA_OF = { http: HttpTool, agent: AgentTool, mcp: McpTool }

export type HttpTool = typeof HttpTool.static
export type AgentTool = typeof AgentTool.static
export type McpTool = typeof McpTool.static
export type Tool = HttpTool | AgentTool | McpTool

TypeRegistry.Set('Tools', (_schema, value) => Array.isArray(value) && value.length <= TOOLS_MAX)

/**
 * Only the array is checked with the body; {@link checkTools} does the rest, because errors of a union are not helpful.
 */
export const Tools = Type.Unsafe<readonly unknown[]>({
  [Kind]: 'Tools',
  type: 'array',
  maxItems: TOOLS_MAX,
  description: 'What the model can call.',
  items: { anyOf: Object.values(SCHEMA_OF) },
})

/** @throws ApiError VALIDATION_ERROR with the path, as in `tools[1].url` */
export function checkTools(tools: readonly unknown[]): readonly Tool[] {
  const names = new Set<string>()
  tools.forEach((tool, index) => {
    const path = `tools[${index}]`
    const checked = checkShape(tool, path)
    if (!TOOL_NAME.test(checked.name))
      throw invalid(`${path}.name`, `expected 1 to 64 letters, digits, "_" or "-"; got ${shown(checked.name)}`)
    if (checked.name === RESERVED_NAME) throw invalid(`${path}.name`, `${RESERVED_NAME} is the name of a built-in tool`)
    if (names.has(checked.name)) throw invalid(`${path}.name`, `another tool is already called ${shown(checked.name)}`)
    names.add(checked.name)
    checkMeaning(checked, path)
  })
  return tools as readonly Tool[]
}

function checkShape(tool: unknown, path: string): Tool {
  if (typeof tool !== 'object' || tool === null || Array.isArray(tool))
    throw invalid(path, `expected an object; got ${shown(tool)}`)
  const { type } = tool as { type?: unknown }
  if (type !== 'http' && type !== 'agent' && type !== 'mcp')
    throw invalid(`${path}.type`, `expected one of http, agent, mcp; got ${shown(type)}`)
  if (Value.Check(SCHEMA_OF[type], tool)) return tool as Tool
  throw invalidAll(
    validationProblems({ type: 'body', at: path, value: tool, findings: Value.Errors(SCHEMA_OF[type], tool) }),
  )
}

function checkMeaning(tool: Tool, path: string): void {
  if (tool.type === 'http') {
    checkUrl(tool.url, `${path}.url`)
    checkHeaders(tool.headers, `${path}.headers`)
    checkJsonSchema(tool.parameters, `${path}.parameters`)
  }
  if (tool.type === 'mcp') {
    checkUrl(tool.server_url, `${path}.server_url`)
    checkHeaders(tool.headers, `${path}.headers`)
  }
}

/** The address behind the host name is checked at call time, because names may resolve differently later. */
function checkUrl(text: string, path: string): void {
  const url = URL.parse(text)
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw invalid(path, `expected an http or https URL; got ${shown(text)}`)
  if (url.username !== '' || url.password !== '')
    throw invalid(path, 'expected a URL without a user name or password; send credentials in headers')
}

function checkHeaders(headers: Record<string, string> | undefined, path: string): void {
  for (const [name, value] of Object.entries(headers ?? {})) {
    if (!HEADER_NAME.test(name)) throw invalid(path, `expected names of HTTP headers; got ${shown(name)}`)
    // The value may be a secret: the message does not repeat it.
    if (!HEADER_VALUE.test(value))
      throw invalid(`${path}[${shown(name)}]`, 'expected the value of an HTTP header, on one line')
  }
}
