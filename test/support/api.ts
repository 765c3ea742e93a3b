/** A response of the service, with its envelope unwrapped. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  /** Untyped: tests read what they expect. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read what they expect.
  readonly data: any
  readonly error: {
    readonly code: string
    readonly message: string
    readonly reason?: string
    readonly param?: string
    readonly problems?: readonly { readonly param: string; readonly message: string }[]
  } | null
  /** The body, unchanged. */
  readonly text: string
}

export interface CallOptions {
  /** Null for none; the service's workspace key by default. */
  readonly key?: string | null | undefined
  readonly headers?: Record<string, string> | undefined
  readonly signal?: AbortSignal
}

/** Calls the service. A `body` of text or bytes is sent unchanged, anything else as JSON. */
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
    return new ReceivedAnswer(`${method} ${path}`, response, text, envelope)
  }
}

/**
 * An answer that a test has received. A test that reads only `data` expects success: reading it from a failure throws what
 * was answered, which says more than that null has no such property.
 */
class ReceivedAnswer implements Answer {
  readonly headers: Headers
  private isChecked = false

  constructor(
    private readonly call: string,
    private readonly response: Response,
    private readonly body: string,
    private readonly envelope: Pick<Answer, 'data' | 'error'>,
  ) {
    this.headers = response.headers
  }

  get status() {
    this.isChecked = true
    return this.response.status
  }

  get text() {
    this.isChecked = true
    return this.body
  }

  get error() {
    this.isChecked = true
    return this.envelope.error
  }

  get data() {
    if (this.envelope.error === null || this.isChecked) return this.envelope.data
    throw new Error(`${this.call} answered ${this.response.status}: ${this.body.slice(0, 2_000)}`)
  }
}

/**
 * All pages of a list.
 *
 * @param read gets a page; the cursor, if any, is appended to its query
 */
export async function pagesOf<Item>(read: (cursor: string) => Promise<{ readonly data: unknown }>): Promise<Item[][]> {
  const pages: Item[][] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { data } = await read(cursor && `&cursor=${encodeURIComponent(cursor)}`)
    const page = data as { readonly items: Item[]; readonly next_cursor: string | null }
    pages.push(page.items)
    cursor = page.next_cursor
  }
  return pages
}

function isRaw(body: unknown): boolean {
  return typeof body === 'string' || body instanceof Uint8Array || body instanceof ReadableStream
}

/** An external agent of the service with its own key. */
export async function newAgent(api: Api, settings: object = {}): Promise<{ agentId: string; agentKey: string }> {
  const agent = await api('POST', '/api/v1/agents', { name: 'an agent', ...settings })
  const key = await api('POST', `/api/v1/agents/${agent.data.agent_id}/keys`, {})
  return { agentId: agent.data.agent_id, agentKey: key.data.key }
}
