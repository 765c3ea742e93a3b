import type { Answer, CallOptions } from './api.ts'
import { eventually } from './eventually.ts'
import type { TestService } from './service.ts'

/** Hosted agents, and readers of their runs' output (docs/hosted-agents.md). */

type Endpoint = Pick<TestService, 'url' | 'workspaceKey' | 'api'>

/** A frame of an output stream, its data parsed. */
export interface OutputFrame {
  readonly id: string
  readonly event: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read what they expect.
  readonly data: any
}

export interface HostedAgent {
  readonly agentId: string
  readonly agentKey: string
  invoke(body?: object, options?: CallOptions): Promise<Answer>
  /** With `stream: true`; resolves once the headers have arrived. */
  stream(body?: object, options?: StreamOptions): Promise<OutputReader>
}

/** A hosted agent of the model `m` with its own key. @throws Error with the response if its settings are rejected */
export async function newHostedAgent(endpoint: Endpoint, settings: object = {}): Promise<HostedAgent> {
  const made = await endpoint.api('POST', '/api/v1/agents', {
    name: 'a hosted agent',
    runtime_type: 'hosted',
    model: 'm',
    prompt: 'You help.',
    ...settings,
  })
  if (made.status !== 200) throw new Error(made.text)
  const agentId: string = made.data.agent_id
  const agentKey: string = (await endpoint.api('POST', `/api/v1/agents/${agentId}/keys`, {})).data.key
  const path = `/api/v1/agents/${agentId}/invoke`
  return {
    agentId,
    agentKey,
    invoke: (body = {}, options) => endpoint.api('POST', path, body, options),
    stream: (body = {}, options) =>
      OutputReader.open(endpoint, path, { ...options, method: 'POST', body: { ...body, stream: true } }),
  }
}

/** Waits until a run has one of these statuses. @returns its record */
export async function untilStatus(endpoint: Pick<Endpoint, 'api'>, runId: string, ...statuses: readonly string[]) {
  return eventually(async () => {
    const { data } = await endpoint.api('GET', `/api/v1/runs/${runId}`)
    return statuses.includes(data?.status) && data
  })
}

export interface StreamOptions extends Pick<CallOptions, 'key' | 'headers'> {
  readonly method?: string
  readonly body?: object
  /** `Last-Event-ID`. */
  readonly after?: string
}

/** An output stream and everything it received. */
export class OutputReader {
  readonly frames: OutputFrame[] = []
  /** Comments, which keep the connection alive. */
  readonly comments: string[] = []
  /** `clean` when the service ended it, `cut` when the connection broke. */
  ended: 'clean' | 'cut' | undefined
  /** A response that is not a stream, or the error that ended it. */
  text = ''

  private constructor(
    readonly response: Response,
    private readonly aborting: AbortController,
  ) {}

  /** Opens the stream at a path of the service, with the workspace key by default. */
  static async open(endpoint: Omit<Endpoint, 'api'>, path: string, options: StreamOptions = {}): Promise<OutputReader> {
    const { method = 'GET', key = endpoint.workspaceKey, headers, body, after } = options
    const aborting = new AbortController()
    const response = await fetch(endpoint.url + path, {
      method,
      headers: {
        ...(key !== null && { authorization: `Bearer ${key}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(after !== undefined && { 'last-event-id': after }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: aborting.signal,
    })
    const reader = new OutputReader(response, aborting)
    void reader.read()
    return reader
  }

  /** Opens the output of a run. */
  static ofRun(endpoint: Omit<Endpoint, 'api'>, runId: string, options: StreamOptions = {}): Promise<OutputReader> {
    return OutputReader.open(endpoint, `/api/v1/runs/${runId}/output-stream`, options)
  }

  get status(): number {
    return this.response.status
  }

  /** The run id, once a frame contains it. */
  async runId(): Promise<string> {
    await this.until(() => this.frames.length > 0)
    return this.frames[0]!.data.run_id
  }

  of(event: string): OutputFrame[] {
    return this.frames.filter((frame) => frame.event === event)
  }

  /** The text as a client displays it: a chunk with a smaller offset replaces everything from there on. */
  textOf(step = 1): string {
    return this.of('chunk')
      .filter(({ data }) => data.step === step)
      .reduce((text, { data }) => text.slice(0, data.offset) + data.delta, '')
  }

  /** Waits for a condition on the received frames. @throws Error if the stream ends first */
  async until(check: () => boolean): Promise<void> {
    await eventually(() => check() || this.ended !== undefined, { intervalMs: 1 })
    if (!check()) throw new Error(`ended (${this.ended}) before: ${check}; ${this.text}`)
  }

  /** Waits for the end of the stream. @returns all frames */
  async all(): Promise<readonly OutputFrame[]> {
    await eventually(() => this.ended !== undefined, { intervalMs: 1 })
    if (this.ended === 'cut') throw new Error('the stream was cut')
    return this.frames
  }

  /** Disconnects. */
  close(): void {
    this.aborting.abort()
  }

  private async read(): Promise<void> {
    const decoder = new TextDecoder()
    let rest = ''
    try {
      for await (const bytes of this.response.body ?? []) {
        rest += decoder.decode(bytes, { stream: true })
        const blocks = rest.split('\n\n')
        rest = blocks.pop()!
        for (const block of blocks) this.take(block)
      }
      this.text = rest
      this.ended = 'clean'
    } catch (error) {
      this.text = String(error)
      this.ended = 'cut'
    }
  }

  private take(block: string): void {
    if (block.startsWith(':')) this.comments.push(block.slice(1).trim())
    else {
      const [, id, event, data] = /^id: (.*)\nevent: (.*)\ndata: (.*)$/.exec(block) ?? []
      if (id === undefined) throw new Error(`not a frame of an output stream: ${JSON.stringify(block)}`)
      this.frames.push({ id, event: event!, data: JSON.parse(data!) })
    }
  }
}
