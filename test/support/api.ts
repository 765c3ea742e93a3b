/** An answer of the service, taken out of its envelope. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  /** Tests look into it freely. */
  // biome-ignore lint/suspicious/noExplicitAny: what a test expects there is the test.
  readonly data: any
  readonly error: { readonly code: string; readonly message: string } | null
  /** The body as it came. */
  readonly text: string
}

export interface CallOptions {
  /** Null for none; the workspace key of the service unless given. */
  readonly key?: string | null
  readonly headers?: Record<string, string>
  readonly signal?: AbortSignal
}

/** Calls the service. A `body` that is text or bytes is sent as it is, anything else as JSON. */
export type Api = (method: string, path: string, body?: unknown, options?: CallOptions) => Promise<Answer>

export function createApi(url: string, workspaceKey: string): Api {
  return async (method, path, body, { key = workspaceKey, headers = {}, signal } = {}) => {
    const response = await fetch(url + path, {
      method,
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: isRaw(body) ? (body as BodyInit) : JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    })
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.startsWith('application/json') === true
    const envelope = isJson ? JSON.parse(text) : { data: null, error: null }
    return { status: response.status, headers: response.headers, text, data: envelope.data, error: envelope.error }
  }
}

function isRaw(body: unknown): boolean {
  return typeof body === 'string' || body instanceof Uint8Array || body instanceof ReadableStream
}

/** An external agent of the service with a key of its own. */
export async function newAgent(api: Api, settings: object = {}): Promise<{ agentId: string; agentKey: string }> {
  const agent = await api('POST', '/api/v1/agents', { name: 'an agent', ...settings })
  const key = await api('POST', `/api/v1/agents/${agent.data.agent_id}/keys`, {})
  return { agentId: agent.data.agent_id, agentKey: key.data.key }
}
