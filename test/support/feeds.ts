import { type Api, type CallOptions, createApi, newAgent } from './api.ts'
import { eventually } from './eventually.ts'
import { OPERATOR_TOKEN, type TestService } from './service.ts'

/** Clients of live feeds over real sockets, and agents that report events for them (docs/feeds.md). */

/** One item of any feed. */
export interface Activity {
  readonly cursor: string
  readonly kind: 'event' | 'task' | 'run'
  readonly agent_id: string
  readonly run_id: string
  readonly received_at: string
  readonly event?: {
    readonly id: string
    readonly seq: number
    readonly task_id?: string
    readonly type: string
    readonly level: string
    readonly payload: Readonly<Record<string, unknown>>
    readonly occurred_at: string
  }
  readonly task?: Readonly<Record<string, unknown>>
  readonly run?: Readonly<Record<string, unknown>>
}

/** Any message that the service sends on a WebSocket. */
export interface SocketMessage {
  readonly op: string
  readonly id?: string
  readonly cursor?: string
  readonly cursors?: Readonly<Record<string, string>>
  readonly recovered?: boolean
  readonly items?: readonly Activity[]
  readonly skipped?: number
  readonly after?: string
  readonly resumed_at?: string
  readonly code?: string
  readonly message?: string
  readonly reason?: string
  readonly reconnect_after_ms?: number
}

export interface FeedOptions extends CallOptions {
  /** A feed token, for `?token=`; then no key is sent. */
  readonly token?: string
}

type Endpoint = Pick<TestService, 'url' | 'workspaceKey'>

/** The headers of a WebSocket upgrade, for plain requests that check the rejection. */
export const HANDSHAKE = {
  upgrade: 'websocket',
  connection: 'Upgrade',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  'sec-websocket-version': '13',
} as const

/** A WebSocket on `GET /api/v1/live` and all messages it received. */
export class LiveSocket {
  /** Unparsed. */
  readonly texts: string[] = []
  readonly messages: SocketMessage[] = []
  closed: { readonly code: number; readonly reason: string } | undefined

  private constructor(private readonly socket: WebSocket) {
    socket.addEventListener('message', ({ data }) => {
      this.texts.push(data)
      this.messages.push(JSON.parse(data))
    })
    socket.addEventListener('close', ({ code, reason }) => {
      this.closed = { code, reason }
    })
  }

  /** @throws Error if the service rejects the upgrade */
  static async open(endpoint: Endpoint, options: FeedOptions = {}): Promise<LiveSocket> {
    const url = feedUrl(endpoint, '/api/v1/live', options).replace(/^http/, 'ws')
    const socket = new WebSocket(url, { headers: feedHeaders(endpoint, options) } as never)
    const live = new LiveSocket(socket)
    await new Promise((resolve, reject) => {
      socket.addEventListener('open', resolve)
      socket.addEventListener('close', () => reject(new Error('the WebSocket was refused')))
    })
    return live
  }

  /** Sends an object as JSON, everything else unchanged. */
  send(message: object | string | Uint8Array<ArrayBuffer>): void {
    const isRaw = typeof message === 'string' || message instanceof Uint8Array
    this.socket.send(isRaw ? message : JSON.stringify(message))
  }

  /** Sends the message and returns the service's replies, without activity. One at a time. */
  async ask(message: object | string | Uint8Array<ArrayBuffer>): Promise<SocketMessage[]> {
    const from = this.messages.length
    this.send(message)
    this.send({ op: 'ping' })
    const answers = () => this.messages.slice(from).filter(({ op }) => op !== 'activity')
    await this.until(() => answers().some(({ op }) => op === 'pong'))
    return answers().slice(0, -1)
  }

  /** @throws Error unless the service replies `subscribed` */
  async subscribe(id: string, options: object = {}): Promise<SocketMessage> {
    const [answer] = await this.ask({ op: 'subscribe', id, ...options })
    if (answer.op !== 'subscribed') throw new Error(JSON.stringify(answer))
    return answer
  }

  /** The activities that a subscription has received so far. */
  items(id: string): Activity[] {
    return this.messages.flatMap((message) => (message.id === id ? (message.items ?? []) : []))
  }

  /** The number of activities reported as skipped because of `max_per_second`. */
  skipped(id: string): number {
    return this.messages.reduce((sum, message) => sum + (message.id === id ? (message.skipped ?? 0) : 0), 0)
  }

  messagesOf(op: string): SocketMessage[] {
    return this.messages.filter((message) => message.op === op)
  }

  /** Waits for a condition on the received messages. @throws Error if the connection closes first */
  async until(check: () => boolean): Promise<void> {
    const isSettled = () => check() || this.closed !== undefined
    await eventually(isSettled, { intervalMs: 2 })
    if (!check()) throw new Error(`closed with ${JSON.stringify(this.closed)} before: ${check}`)
  }

  async untilClosed(): Promise<{ readonly code: number; readonly reason: string }> {
    await eventually(() => this.closed !== undefined, { intervalMs: 2 })
    return this.closed!
  }

  async close(): Promise<void> {
    this.socket.close()
    await this.untilClosed()
  }
}

/** One block of an event stream. */
export interface StreamFrame {
  readonly id?: string
  readonly event?: string
  readonly data?: string
}

/** An event stream and everything it received. */
export class LiveStream {
  text = ''
  /** `clean` when the service ended it, `cut` when the connection broke. */
  ended: 'clean' | 'cut' | undefined

  private constructor(
    readonly response: Response,
    private readonly aborting: AbortController,
  ) {}

  static async open(endpoint: Endpoint, path: string, options: FeedOptions = {}): Promise<LiveStream> {
    const aborting = new AbortController()
    const response = await fetch(feedUrl(endpoint, path, options), {
      headers: feedHeaders(endpoint, options),
      signal: aborting.signal,
    })
    const stream = new LiveStream(response, aborting)
    void stream.read()
    return stream
  }

  get status(): number {
    return this.response.status
  }

  /** The blocks so far. @throws Error for a line that is invalid in an event stream */
  get frames(): StreamFrame[] {
    return this.text.split('\n\n').slice(0, -1).map(parseFrame)
  }

  get items(): Activity[] {
    return this.frames
      .filter(({ event, data }) => data !== undefined && event !== 'gap')
      .map(({ data }) => JSON.parse(data!))
  }

  /** Waits for a condition on the received frames. @throws Error if the stream ends first */
  async until(check: () => boolean): Promise<void> {
    await eventually(() => check() || this.ended !== undefined, { intervalMs: 2 })
    if (!check()) throw new Error(`ended (${this.ended}) before: ${check}`)
  }

  async untilEnded(): Promise<'clean' | 'cut'> {
    await eventually(() => this.ended !== undefined, { intervalMs: 2 })
    return this.ended!
  }

  async close(): Promise<void> {
    this.aborting.abort()
    await this.untilEnded()
  }

  private async read(): Promise<void> {
    const decoder = new TextDecoder()
    try {
      for await (const chunk of this.response.body ?? []) this.text += decoder.decode(chunk, { stream: true })
      this.ended = 'clean'
    } catch {
      this.ended = 'cut'
    }
  }
}

function parseFrame(block: string): StreamFrame {
  const fields: Record<string, string> = {}
  for (const line of block.split(/\r\n|\r|\n/)) {
    const [, name, value] = /^(id|event|data|retry|): (.*)$/s.exec(line) ?? []
    if (name === undefined || name in fields)
      throw new Error(`not a block of an event stream: ${JSON.stringify(block)}`)
    fields[name] = value
  }
  return fields
}

function feedUrl({ url }: Endpoint, path: string, { token }: FeedOptions): string {
  if (token === undefined) return url + path
  return `${url}${path}${path.includes('?') ? '&' : '?'}token=${encodeURIComponent(token)}`
}

function feedHeaders({ workspaceKey }: Endpoint, { key, token, headers }: FeedOptions): Record<string, string> {
  const sent = key === undefined && token === undefined ? workspaceKey : key
  return { ...(typeof sent === 'string' && { authorization: `Bearer ${sent}` }), ...headers }
}

/** A separate workspace, so that tests on one service do not see each other's data. */
export interface Tenant extends Endpoint {
  readonly workspaceId: string
  readonly api: Api
}

export async function newTenant({ url, api }: Pick<TestService, 'url' | 'api'>): Promise<Tenant> {
  const { data } = await api('POST', '/api/v1/workspaces', { name: 'a tenant' }, { key: OPERATOR_TOKEN })
  return { url, workspaceKey: data.key, workspaceId: data.workspace_id, api: createApi(url, data.key) }
}

/** An agent that reports. Each call throws unless the service accepts it. */
export interface Reporter {
  readonly agentId: string
  readonly agentKey: string
  /** @returns the id of the run */
  start(more?: object): Promise<string>
  events(runId: string, events: readonly object[]): Promise<{ readonly first_seq: number; readonly last_seq: number }>
  task(runId: string, task: object): Promise<string>
  /** Ends the run as completed, or as failed if there is a message. */
  end(runId: string, errorMessage?: string): Promise<void>
}

export async function newReporter(api: Api): Promise<Reporter> {
  const { agentId, agentKey } = await newAgent(api)
  const call = async (path: string, body: object) => {
    const { status, data, text } = await api('POST', `/api/ingest/v1/${path}`, body, { key: agentKey })
    if (status !== 200) throw new Error(text)
    return data
  }
  return {
    agentId,
    agentKey,
    start: async (more = {}) => (await call('run/start', { agent_id: agentId, ...more })).run_id,
    events: (run_id, events) => call('events', { run_id, events }),
    task: async (run_id, task) =>
      (await call('tasks', { run_id, task: { id: crypto.randomUUID(), name: 'a task', ...task } })).task_id,
    end: (run_id, error_message) =>
      error_message === undefined ? call('run/complete', { run_id }) : call('run/fail', { run_id, error_message }),
  }
}

/** A gauge of `GET /metrics`. */
export async function gauge({ url }: Pick<Endpoint, 'url'>, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1])
}

/** `n` events with their number in the payload, from `first` on. */
export function numbered(count: number, first = 0): { type: string; payload: { n: number } }[] {
  return Array.from({ length: count }, (_, i) => ({ type: 'step', payload: { n: first + i } }))
}

export function numbersOf(items: readonly Activity[]): unknown[] {
  return items.map(({ event }) => event?.payload.n)
}
