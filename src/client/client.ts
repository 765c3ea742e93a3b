import { Http } from './http.ts'
import { createEventIds, uuidv7 } from './ids.ts'
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
      idempotencyKey: idempotencyKey ?? (method === 'POST' ? uuidv7() : undefined),
    })
    return data as DataOf<OperationOf<M, P>>
  }
}

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
