import { t } from 'elysia'
import { ApiError } from '../../base/errors.ts'
import { cursorCodec } from '../../base/http/page.ts'
import { Int } from '../../base/http/schema.ts'
import { isObject } from '../../base/json-object.ts'
import { RawJson } from '../../base/raw-json.ts'
import { INVALID_PARAMS, RESOURCE_NOT_FOUND, RpcError } from './errors.ts'
import type { Message } from './message.ts'
import type {
  CallableTool,
  CallContext,
  McpFeature,
  ResourceProvider,
  ToolDefinition,
  ToolProvider,
} from './provider.ts'
import { failedTool } from './results.ts'

/** A message with the tool that it calls, if it calls one. */
export interface FoundMessage extends Message {
  readonly tool: CallableTool | undefined
}

type Answer = (context: CallContext, message: FoundMessage) => Promise<object> | object

const TOOLS_CURSOR = cursorCodec(t.Tuple([Int({ minimum: 0, maximum: 100 }), t.String({ maxLength: 100 })]))
/** Characters of a client's name for something, in an error. */
const SHOWN_MAX = 200
const NO_ARGUMENTS = new RawJson('{}')

/** The methods that are the same for every server, on what the features offer. */
export function commonMethods(features: readonly McpFeature[]): ReadonlyMap<string, Answer> {
  const tools = features.flatMap((feature) => feature.tools ?? [])
  const resources = features.flatMap((feature) => feature.resources ?? [])
  const prompts = features.flatMap((feature) => feature.prompts ?? [])
  return new Map<string, Answer>([
    ['tools/list', (context, message) => listTools(tools, context, message)],
    ['tools/call', callTool],
    ['resources/list', (context) => ({ resources: resources.flatMap((provider) => provider.list(context)) })],
    ['resources/templates/list', () => ({ resourceTemplates: resources.flatMap(({ templates }) => templates) })],
    [
      'resources/read',
      async (context, message) => {
        const uri = stringParam(message, 'uri')
        const contents = await readResource(resources, context, uri).catch((error: unknown) => {
          if (!(error instanceof ApiError) || error.code !== 'NOT_FOUND') throw error
          throw new RpcError(RESOURCE_NOT_FOUND, error.message, { code: error.code, uri: uri.slice(0, SHOWN_MAX) })
        })
        return { contents: [contents] }
      },
    ],
    ['prompts/list', (context) => ({ prompts: prompts.flatMap((provider) => provider.list(context)) })],
    [
      'prompts/get',
      (context, message) => {
        const name = stringParam(message, 'name')
        const given = promptArguments(message)
        for (const provider of prompts) {
          const prompt = provider.get(context, name, given)
          if (prompt === undefined) continue
          const { text, ...described } = prompt
          return { ...described, messages: [{ role: 'user', content: { type: 'text', text } }] }
        }
        throw new RpcError(INVALID_PARAMS, `params.name: prompt does not exist: ${name.slice(0, SHOWN_MAX)}`)
      },
    ],
  ])
}

/** One page of one provider after another. The cursor names the provider and where its page begins. */
async function listTools(providers: readonly ToolProvider[], context: CallContext, message: FoundMessage) {
  const [index, after] = cursorOf(message)
  const tools: ToolDefinition[] = []
  for (let at = index; at < providers.length; at++) {
    const page = await providers[at].list(context, at === index ? after : undefined)
    tools.push(...page.tools)
    if (page.next !== undefined) return { tools, nextCursor: TOOLS_CURSOR.encode([at, page.next]) }
  }
  return { tools }
}

function cursorOf(message: FoundMessage): readonly [provider: number, after: string | undefined] {
  const cursor: unknown = message.rawMember('cursor')?.parse()
  if (cursor === undefined) return [0, undefined]
  if (typeof cursor !== 'string') throw new RpcError(INVALID_PARAMS, 'params.cursor: expected a string')
  try {
    return TOOLS_CURSOR.decode(cursor)
  } catch {
    throw new RpcError(INVALID_PARAMS, 'params.cursor: expected the nextCursor of a list of tools')
  }
}

async function readResource(
  providers: readonly ResourceProvider[],
  context: CallContext,
  uri: string,
): Promise<object> {
  for (const provider of providers) {
    const read = await provider.read(context, uri)
    if (read !== undefined) return { uri, ...read }
  }
  throw new ApiError('NOT_FOUND', `resource does not exist: ${uri.slice(0, SHOWN_MAX)}`)
}

async function callTool(context: CallContext, message: FoundMessage): Promise<object> {
  if (message.tool === undefined)
    throw new RpcError(INVALID_PARAMS, `params.name: tool does not exist: ${String(message.name).slice(0, SHOWN_MAX)}`)
  const input = message.rawMember('arguments') ?? NO_ARGUMENTS
  if (!input.text.startsWith('{')) throw new RpcError(INVALID_PARAMS, 'params.arguments: expected an object')
  try {
    return await message.tool.call(context, input)
  } catch (error) {
    if (!(error instanceof ApiError) || error.code === 'INTERNAL') throw error
    return failedTool(error)
  }
}

function stringParam(message: Message, name: string): string {
  const value: unknown = message.rawMember(name)?.parse()
  if (typeof value !== 'string') throw new RpcError(INVALID_PARAMS, `params.${name}: expected a string`)
  return value
}

function promptArguments(message: Message): ReadonlyMap<string, string> {
  const value = message.rawMember('arguments')?.parse() ?? {}
  if (!isObject(value)) throw new RpcError(INVALID_PARAMS, 'params.arguments: expected an object')
  const entries = Object.entries(value)
  const bad = entries.find(([, each]) => typeof each !== 'string')
  if (bad !== undefined)
    throw new RpcError(INVALID_PARAMS, `params.arguments.${bad[0].slice(0, 80)}: expected a string`)
  return new Map(entries as [string, string][])
}
