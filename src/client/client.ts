import { type Activity, type FeedFilter, type FeedOptions, feed, follow, type Gap } from './feed.ts'
import type { components } from './generated/api.ts'
import { type Call, Http } from './http.ts'
import { createEventIds, uuidv7 } from './ids.ts'
import {
  type DecisionOptions,
  type InvokeOptions,
  invoke,
  invokeStream,
  type Outcome,
  type OutputFrame,
  type OutputOptions,
  outcomeOf,
  output,
} from './invoke.ts'
import { type ClientOptions, readOptions, type Settings } from './options.ts'
import { type Platform, WEB } from './platform.ts'
import { Reporter, type ReportStats } from './reporter.ts'
import {
  type CallOptions,
  type DataOf,
  fillPath,
  type InputOf,
  type Method,
  type OperationOf,
  type PathOf,
  queryString,
} from './request.ts'
import { type Reporting, type Run, type RunOptions, startRun } from './run.ts'

const PAGE_SIZE = 200

/** A client of the Agent Run Service: docs/client.md. */
export class Client {
  protected readonly http: Http
  private readonly settings: Settings
  private readonly reporter: Reporter
  private readonly reporting: Reporting
  private readonly forgetExit: () => void

  /** @throws Error when an option is missing or wrong, or the spool cannot be used */
  constructor(options: ClientOptions = {}, platform: Platform = WEB) {
    const settings = readOptions(options, platform)
    const { spool, spoolBytes } = settings
    this.settings = settings
    this.http = new Http(settings)
    this.reporter = new Reporter({
      ...settings,
      http: this.http,
      spool: spool === undefined ? undefined : platform.openSpool(spool),
      spoolBytes,
    })
    this.reporting = { reporter: this.reporter, newEventId: createEventIds(), now: createNow() }
    const flush = () => this.reporter.flushAtExit(settings.closeTimeoutMs)
    this.forgetExit = settings.flushAtExit ? platform.onExit(flush) : () => {}
  }

  /** Base URL of the service, without a trailing slash. */
  get url(): string {
    return this.settings.url
  }

  /** What is safe to log. */
  toJSON(): object {
    return { url: this.url, stats: this.stats }
  }

  get stats(): ReportStats {
    return this.reporter.stats
  }

  /**
   * Reports a run around `work`: it completes with what `work` returns, or fails with what it throws. Nothing here waits for
   * the network.
   *
   * @returns what `work` returns
   * @throws what `work` throws
   */
  async run<T>(options: RunOptions, work: (run: Run) => T | Promise<T>): Promise<T> {
    const run = this.start(options)
    try {
      const output = await work(run)
      run.complete(output)
      return output
    } catch (error) {
      run.fail(error)
      throw error
    }
  }

  /** Reports the start of a run. End it with `run.complete` or `run.fail`. @throws Error without an agent */
  start(options: RunOptions = {}): Run {
    return startRun(this.reporting, { ...options, agentId: options.agentId ?? this.settings.agentId })
  }

  /**
   * Sends all reports now.
   *
   * @param timeoutMs how long to wait; without it, as long as it takes
   * @returns whether everything that was reported before is acknowledged or refused
   */
  flush(timeoutMs?: number): Promise<boolean> {
    return this.reporter.flush(timeoutMs)
  }

  /** Sends what is left for at most `timeoutMs` and ends the client. @returns whether everything was sent */
  async close(timeoutMs = this.settings.closeTimeoutMs): Promise<boolean> {
    this.forgetExit()
    return this.reporter.close(timeoutMs)
  }

  /**
   * The activity of the workspace, or of the agent of the key, as it happens. It resumes by itself; a `gap` says what is lost.
   * @throws ServiceError when the service refuses it
   */
  feed(filter: FeedFilter = {}, options: FeedOptions = {}): AsyncGenerator<Activity | Gap> {
    return feed(this.http, filter, options)
  }

  /** The activity of one run, until the run has ended. */
  follow(runId: string, options: FeedOptions = {}): AsyncGenerator<Activity | Gap> {
    return follow(this.http, runId, options)
  }

  /**
   * Runs one SELECT. Needs a workspace key.
   *
   * @param params values of `{name:Type}` placeholders
   * @returns the rows, of a type that you name, and what else the service says about them
   */
  async query<Row = Readonly<Record<string, unknown>>>(
    sql: string,
    params: QueryParams = {},
    { waitFor, signal }: QueryOptions = {},
  ): Promise<QueryResult<Row>> {
    const call = { path: '/api/v1/query', body: { query: sql, params, wait_for: waitFor }, signal, mayTakeLong: true }
    return (await this.http.call(call)) as QueryResult<Row>
  }

  /** Runs a hosted agent: until it ends or waits for a person, or as a stream of its output. */
  invoke(agentId: string, input: unknown, options: InvokeOptions & { stream: true }): AsyncGenerator<OutputFrame>
  invoke(agentId: string, input?: unknown, options?: InvokeOptions & { stream?: false }): Promise<Outcome>
  invoke(agentId: string, input: unknown = {}, options: InvokeOptions = {}) {
    const run = options.stream === true ? invokeStream : invoke
    return run(this.http, agentId, input, options)
  }

  /** The output of a hosted run from the beginning, or after a frame; also of a run that has ended. */
  output(runId: string, options: OutputOptions = {}): AsyncGenerator<OutputFrame> {
    return output(this.http, runId, options)
  }

  /** Approves a tool call. @returns how the run goes on, as {@link invoke} does */
  approve(approvalId: string, options: DecisionOptions = {}): Promise<Outcome> {
    const { comment, editedInput, background, signal } = options
    const path = `/api/v1/approvals/${encodeURIComponent(approvalId)}/approve`
    return outcomeOf(this.http, path, { comment, edited_input: editedInput, background }, signal)
  }

  /** Rejects a tool call; the model is told why. */
  reject(approvalId: string, options: Omit<DecisionOptions, 'editedInput'> = {}): Promise<Outcome> {
    const { comment, background, signal } = options
    const path = `/api/v1/approvals/${encodeURIComponent(approvalId)}/reject`
    return outcomeOf(this.http, path, { comment, background }, signal)
  }

  /** Answers a question of the model. */
  answer(requestId: string, answer: string, options: Omit<DecisionOptions, 'editedInput' | 'comment'> = {}) {
    const path = `/api/v1/input-requests/${encodeURIComponent(requestId)}/answer`
    return outcomeOf(this.http, path, { answer, background: options.background }, options.signal)
  }

  /** All runs, newest first, read page by page. */
  runs(query: QueryOf<'/api/v1/runs'> = {}): AsyncGenerator<Schemas['Run']> {
    return this.pages('/api/v1/runs', query)
  }

  /** The record of one run. */
  getRun(runId: string): Promise<Schemas['Run']> {
    return this.request('GET', '/api/v1/runs/{run_id}', { path: { run_id: runId } })
  }

  /** The events of a run, oldest first. */
  events(runId: string, query: QueryOf<'/api/v1/runs/{run_id}/events'> = {}): AsyncGenerator<Schemas['Event']> {
    return this.pages(`/api/v1/runs/${encodeURIComponent(runId)}/events`, query, 'after_seq')
  }

  /** The tasks of a run, newest first. */
  tasks(runId: string): AsyncGenerator<Schemas['Task']> {
    return this.pages(`/api/v1/runs/${encodeURIComponent(runId)}/tasks`, {})
  }

  /** The agents of the workspace, newest first. Needs a workspace key. */
  agents(query: QueryOf<'/api/v1/agents'> = {}): AsyncGenerator<Schemas['Agent']> {
    return this.pages('/api/v1/agents', query)
  }

  private async *pages<T>(path: string, query: object, next = 'cursor'): AsyncGenerator<T> {
    for (let at = {}; ; ) {
      const page = (await this.http.call({
        path: path + queryString({ limit: PAGE_SIZE, ...query, ...at }),
      })) as Page<T>
      yield* page.items
      if (page.next_cursor === null) return
      at = { [next]: page.next_cursor }
    }
  }

  /**
   * Sends a call once, for responses that are not JSON or that are streamed.
   *
   * @returns a successful response, whose body has not been read
   * @throws ServiceError for an error response; the error of `fetch` when there is no response
   */
  send(call: Call): Promise<Response> {
    return this.http.send(call)
  }

  /**
   * Calls any operation of the API; repeats it after temporary failures.
   *
   * @param path as in the OpenAPI document, with `path`, `query` and `body` as it says
   * @returns `data` of the response
   * @throws ServiceError, NoResponseError; the reason of `signal` when it aborts
   */
  async request<M extends Method, P extends PathOf<M>>(
    method: M,
    path: P,
    input: InputOf<OperationOf<M, P>> & CallOptions,
  ): Promise<DataOf<OperationOf<M, P>>> {
    const { path: values, query, body, signal, idempotencyKey } = input as GivenInput
    const data = await this.http.call({
      method,
      path: fillPath(path, values) + queryString(query),
      body,
      signal,
      idempotencyKey: idempotencyKey === undefined && method === 'POST' ? uuidv7() : (idempotencyKey ?? undefined),
    })
    return data as DataOf<OperationOf<M, P>>
  }
}

type Schemas = components['schemas']
type QueryOf<P extends PathOf<'GET'>> =
  InputOf<OperationOf<'GET', P>> extends { readonly query?: infer Query } ? Omit<NonNullable<Query>, 'cursor'> : never

interface Page<T> {
  readonly items: readonly T[]
  readonly next_cursor: string | number | null
}

export type QueryParams = NonNullable<Schemas['RunQuery']['params']>

export interface QueryOptions {
  /** Waits until this position is readable: `client.stats.lastSeq`, or `complete_through` of an earlier result. */
  readonly waitFor?: number | string | undefined
  readonly signal?: AbortSignal | undefined
}

export type QueryResult<Row> = Omit<Schemas['QueryAnswer'], 'rows'> & { readonly rows: readonly Row[] }

interface GivenInput extends CallOptions {
  readonly path?: Readonly<Record<string, unknown>>
  readonly query?: object
  readonly body?: object
}

/** The time as text, made once per millisecond. */
function createNow(): () => string {
  let last = 0
  let text = ''
  return () => {
    const now = Date.now()
    if (now !== last) {
      last = now
      text = new Date(now).toISOString()
    }
    return text
  }
}
