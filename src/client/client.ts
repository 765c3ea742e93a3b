import type { components } from './generated/api.ts'
import { type Call, Http, NO_TIMEOUT } from './http.ts'
import { createEventIds } from './ids.ts'
import { type ClientOptions, type Platform, readOptions, type Settings } from './options.ts'
import type { ReportStats } from './report-stats.ts'
import { Reporter } from './reporter.ts'
import type { CallOptions, DataOf, InputOf, Method, OperationOf, PathOf } from './request.ts'
import { Agents, Approvals, InputRequests, Runs } from './resources.ts'
import { type Reporting, type Run, type RunOptions, startRun } from './run.ts'
import { reportScore, type ScoreArguments } from './score.ts'
import { type Activity, type FeedFilter, type FeedOptions, feed, follow, type Gap } from './streams.ts'

/** What clients have in common on all platforms. */
export abstract class BaseClient {
  readonly runs: Runs
  readonly agents: Agents
  readonly approvals: Approvals
  readonly inputRequests: InputRequests
  private readonly http: Http
  private readonly settings: Settings
  private readonly reporter: Reporter
  private readonly reporting: Reporting
  private readonly removeExitHandler: () => void

  protected constructor(options: ClientOptions, platform: Platform) {
    const settings = readOptions(options, platform)
    const { spool } = settings
    this.settings = settings
    this.http = new Http(settings)
    this.runs = new Runs(this.http)
    this.agents = new Agents(this.http)
    this.approvals = new Approvals(this.http)
    this.inputRequests = new InputRequests(this.http)
    const file = spool === undefined ? undefined : platform.openSpool(spool)
    this.reporter = new Reporter({ ...settings, http: this.http, spool: file })
    this.reporting = {
      reporter: this.reporter,
      newEventId: createEventIds(),
      now: createNow(),
      taskScope: platform.taskScope,
    }
    const flush = () => this.reporter.flushAtExit(settings.closeTimeoutMs)
    this.removeExitHandler = settings.flushAtExit ? platform.onExit(flush) : () => {}
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
    const run = this.startRun(options)
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
  startRun(options: RunOptions = {}): Run {
    return startRun(this.reporting, { ...options, agentId: options.agentId ?? this.settings.agentId })
  }

  /** Reports a score of any run, as `run.score` does of its own. */
  score(runId: string, name: string, ...rest: ScoreArguments): Promise<void> {
    return reportScore(this.reporting, runId, name, rest)
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
    this.removeExitHandler()
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
    { waitFor, ...options }: QueryOptions = {},
  ): Promise<QueryResult<Row>> {
    const body = { query: sql, params, wait_for: waitFor }
    return (await this.http.call({
      path: '/api/v1/query',
      body,
      timeoutMs: NO_TIMEOUT,
      ...options,
    })) as QueryResult<Row>
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
  request<M extends Method, P extends PathOf<M>>(
    method: M,
    path: P,
    input: InputOf<OperationOf<M, P>> & CallOptions,
  ): Promise<DataOf<OperationOf<M, P>>> {
    return this.http.request(method, path, input)
  }
}

type Schemas = components['schemas']

export type QueryParams = NonNullable<Schemas['RunQuery']['params']>

export interface QueryOptions extends Omit<CallOptions, 'idempotencyKey'> {
  /** Waits until this position is readable: `client.stats.lastSeq`, or `complete_through` of an earlier result. */
  readonly waitFor?: number | string | undefined
}

export type QueryResult<Row> = Omit<Schemas['QueryAnswer'], 'rows'> & { readonly rows: readonly Row[] }

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
