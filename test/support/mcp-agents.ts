import type { ConnectedMcpSessionPort } from '@modelcontextprotocol/ext-tasks/client'
import { eventually } from './eventually.ts'
import { callTurn, type Script, startHostedRig } from './hosted-rig.ts'
import type { TestService } from './service.ts'

/** A client of the MCP server, revision 2026-07-28, that declares what it can do with each request. */

const VERSION = '2026-07-28'
export const TASKS = 'io.modelcontextprotocol/tasks'
/** Follows tasks, and shows forms. */
export const ABLE = { elicitation: {}, extensions: { [TASKS]: {} } }

// biome-ignore lint/suspicious/noExplicitAny: tests read what they expect.
type Json = any

export interface RpcAnswer {
  readonly status: number
  readonly result: Json
  readonly error: Json
  /** Notifications that came before the answer. */
  readonly notifications: readonly Json[]
}

export interface McpOptions {
  readonly key?: string
  readonly capabilities?: object
  readonly signal?: AbortSignal
  /** Asks for notifications of progress. */
  readonly progressToken?: string
}

export type Mcp = ReturnType<typeof mcpClient>

/** @param defaults of every request */
export function mcpClient(service: Pick<TestService, 'url' | 'workspaceKey'>, defaults: McpOptions = {}) {
  let lastId = 0
  async function request(method: string, params: Json = {}, options: McpOptions = {}): Promise<RpcAnswer> {
    const { key = service.workspaceKey, capabilities = ABLE, signal, progressToken } = { ...defaults, ...options }
    const name = params.name ?? params.taskId ?? params.uri
    const response = await fetch(`${service.url}/mcp`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': VERSION,
        'mcp-method': method,
        ...(typeof name === 'string' && { 'mcp-name': name }),
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: ++lastId,
        method,
        params: {
          ...params,
          _meta: {
            ...params._meta,
            'io.modelcontextprotocol/protocolVersion': VERSION,
            'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
            'io.modelcontextprotocol/clientCapabilities': capabilities,
            ...(progressToken !== undefined && { progressToken }),
          },
        },
      }),
      ...(signal && { signal }),
    })
    const messages = messagesIn(await response.text())
    const { result, error } = messages.at(-1) ?? {}
    return { status: response.status, result, error, notifications: messages.slice(0, -1) }
  }
  const call = (name: string, args: object = {}, options?: McpOptions) =>
    request('tools/call', { name, arguments: args }, options)
  const task = (taskId: string, options?: McpOptions) => request('tasks/get', { taskId }, options)
  const update = (taskId: string, inputResponses: object, options?: McpOptions) =>
    request('tasks/update', { taskId, inputResponses }, options)
  return { request, call, task, update }
}

function messagesIn(text: string): Json[] {
  if (text.startsWith('{')) return [JSON.parse(text)]
  return text.split('\n').flatMap((line) => (line.startsWith('data: ') ? [JSON.parse(line.slice(6))] : []))
}

/** A connection for the client of `@modelcontextprotocol/ext-tasks`. */
export function taskPort({ request }: Mcp): ConnectedMcpSessionPort {
  const nothing = () => () => {}
  return {
    endpointId: 'test',
    taskCapabilities: { generation: 'v2', capabilities: {} },
    invalidated: false,
    async dispatch(message) {
      const { method, params } = message as { method: string; params?: object }
      const { result, error } = await request(method, params)
      return error === undefined ? { kind: 'result', result } : { kind: 'error', error }
    },
    onServerRequest: nothing,
    onNotification: nothing,
    onInvalidated: nothing,
  }
}

/** What tests of agents as tools need: a rig, a client, and agents that are tools. */
export async function startMcpRig() {
  const rig = await startHostedRig()
  const mcp = mcpClient(rig.service)
  let names = 0
  /** An agent that is a tool of a new name. */
  async function toolOf(turns: Script, settings: object = {}) {
    const name = `tool_${++names}`
    return { name, ...(await rig.agent(rig.service, turns, { name, expose: ['mcp'], ...settings })) }
  }
  return {
    ...rig,
    mcp,
    toolOf,
    /** A tool whose agent asks for approval of a call of `pay`. */
    payer: (settings: object = {}) =>
      toolOf([callTurn(['pay', { n: 7 }]), { text: 'Paid.' }], {
        tools: [rig.tools.tool('pay', { requires_approval: true })],
        ...settings,
      }),
    /** What a task waits for, once it does. */
    async untilAsked(taskId: string, client = mcp) {
      const { result } = await eventually(async () => {
        const answer = await client.task(taskId)
        return answer.result?.status === 'input_required' && answer
      })
      return { ids: Object.keys(result.inputRequests), forms: Object.values(result.inputRequests) as Json[] }
    },
    /** A task once it has ended. */
    untilDone: (taskId: string) =>
      eventually(async () => {
        const { result } = await mcp.task(taskId)
        return ['completed', 'failed', 'cancelled'].includes(result.status) && result
      }),
  }
}

/** A response to a form that a person has filled in. */
export const accept = (content: object) => ({ action: 'accept', content })
