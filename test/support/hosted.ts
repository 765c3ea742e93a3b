import type { Answer, CallOptions } from './api.ts'
import { eventually } from './eventually.ts'
import type { TestService } from './service.ts'

/** Hosted agents, and readers of what their runs put out (docs/specification.md#hosted-agents). */

type Place = Pick<TestService, 'url' | 'workspaceKey' | 'api'>

/** A frame of an output stream, its data parsed. */
export interface OutputFrame {
  readonly id: string
  readonly event: string
  // biome-ignore lint/suspicious/noExplicitAny: what a test expects there is the test.
  readonly data: any
}

export interface HostedAgent {
  readonly agentId: string
  readonly agentKey: string
  invoke(body?: object, options?: CallOptions): Promise<Answer>
  /** With `stream: true`; resolves as soon as the headers are there. */
  stream(body?: object, options?: StreamOptions): Promise<OutputReader>
}

/** A hosted agent of the model `m` with a key of its own. @throws Error with the answer when its settings are refused */
export async function newHostedAgent(place: Place, settings: object = {}): Promise<HostedAgent> {
  const made = await place.api('POST', '/api/v1/agents', {
    name: 'a hosted agent',
    runtime_type: 'hosted',
    model: 'm',
    prompt: 'You help.',
    ...settings,
  })
  if (made.status !== 200) throw new Error(made.text)
  const agentId: string = made.data.agent_id
  const agentKey: string = (await place.api('POST', `/api/v1/agents/${agentId}/keys`, {})).data.key
  const path = `/api/v1/agents/${agentId}/invoke`
  return {
    agentId,
    agentKey,
    invoke: (body = {}, options) => place.api('POST', path, body, options),
    stream: (body = {}, options) =>
      OutputReader.open(place, path, { ...options, method: 'POST', body: { ...body, stream: true } }),
  }
}

/** Waits until a run is in one of these states. @returns its record */
export async function untilStatus(place: Pick<Place, 'api'>, runId: string, ...statuses: readonly string[]) {
  return eventually(async () => {
    const { data } = await place.api('GET', `/api/v1/runs/${runId}`)
    return statuses.includes(data?.status) && data
  })
}

export interface StreamOptions extends Pick<CallOptions, 'key' | 'headers'> {
  readonly method?: string
  readonly body?: object
  /** `Last-Event-ID`. */
  readonly after?: string
}

/** An output stream and all that it has been told. */
export class OutputReader {
  readonly frames: OutputFrame[] = []
  /** Comments, which keep the connection alive. */
  readonly comments: string[] = []
  /** `clean` when the service ended it, `cut` when the connection broke. */
  ended: 'clean' | 'cut' | undefined
  /** An answer that is no stream, or why there is no more. */
  text = ''

  private constructor(
    readonly response: Response,
    private readonly aborting: AbortController,
  ) {}

  /** Opens the stream behind an address of the service; with the workspace key unless told otherwise. */
  static async open(place: Omit<Place, 'api'>, path: string, options: StreamOptions = {}): Promise<OutputReader> {
    const { method = 'GET', key = place.workspaceKey, headers, body, after } = options
    const aborting = new AbortController()
    const response = await fetch(place.url + path, {
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

  /** What a run puts out. */
  static ofRun(place: Omit<Place, 'api'>, runId: string, options: StreamOptions = {}): Promise<OutputReader> {
    return OutputReader.open(place, `/api/v1/runs/${runId}/output-stream`, options)
  }

  get status(): number {
    return this.response.status
  }

  /** Of the run, as soon as a frame tells it. */
  async runId(): Promise<string> {
    await this.until(() => this.frames.length > 0)
    return this.frames[0]!.data.run_id
  }

  of(event: string): OutputFrame[] {
    return this.frames.filter((frame) => frame.event === event)
  }

  /** The text as a client shows it: a chunk with a smaller offset takes back what was said from there on. */
  said(step = 1): string {
    return this.of('chunk')
      .filter(({ data }) => data.step === step)
      .reduce((text, { data }) => text.slice(0, data.offset) + data.delta, '')
  }

  /** Waits for a condition on what it has been told. @throws Error when the stream ends before */
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

  /** Goes away, as clients do. */
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
      if (id === undefined) throw new Error(`no frame of an output stream: ${JSON.stringify(block)}`)
      this.frames.push({ id, event: event!, data: JSON.parse(data!) })
    }
  }
}
