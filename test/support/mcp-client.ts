/** What the answer to a message was. */
export interface McpAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The message, also from an event stream. Untyped: tests read what they expect. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read what they expect.
  readonly message: any
}

interface CallOptions {
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

const MODERN = '2026-07-28'
const LEGACY = '2025-11-25'

/** Sends bytes to the MCP server. */
export async function postMcp(
  url: string,
  key: string | null,
  body: string | Uint8Array<ArrayBuffer>,
  options: CallOptions = {},
): Promise<McpAnswer> {
  const response = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(key !== null && { authorization: `Bearer ${key}` }),
      ...options.headers,
    },
    body,
    ...(options.signal && { signal: options.signal }),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, message: messageIn(text) }
}

/** Calls a method as a client of revision 2025-11-25 does, without the `initialize` that the server does not need. */
export function callLegacy(
  url: string,
  key: string | null,
  method: string,
  params: object = {},
  options: CallOptions = {},
): Promise<McpAnswer> {
  const headers = { 'mcp-protocol-version': LEGACY, ...options.headers }
  return postMcp(url, key, JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }), { ...options, headers })
}

/** Calls a method as a client of revision 2026-07-28 does. */
export function callModern(
  url: string,
  key: string | null,
  method: string,
  params: object = {},
  options: CallOptions = {},
): Promise<McpAnswer> {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': MODERN,
    'io.modelcontextprotocol/clientCapabilities': {},
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  }
  const { name, uri } = params as { name?: string; uri?: string }
  const named = name ?? uri
  const headers = {
    'mcp-protocol-version': MODERN,
    'mcp-method': method,
    ...(named !== undefined && { 'mcp-name': named }),
    ...options.headers,
  }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { _meta, ...params } })
  return postMcp(url, key, body, { ...options, headers })
}

function messageIn(text: string): unknown {
  const data =
    text.startsWith('{') || text.startsWith('[')
      ? text
      : text
          .match(/^data: (.+)$/gm)
          ?.at(-1)
          ?.slice(6)
  return data === undefined ? null : JSON.parse(data)
}
