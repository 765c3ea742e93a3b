import type { components } from './generated/api.ts'
import type { Http } from './http.ts'
import { type OutputFrame, type OutputOptions, output } from './output.ts'
import { type ListQuery, list, type PagePromise } from './page.ts'
import type { CallOptions } from './request.ts'

type Schemas = components['schemas']

export interface CancelOptions extends CallOptions {
  readonly reason?: string | undefined
}

/** Runs of external and hosted agents. */
export class Runs {
  constructor(private readonly http: Http) {}

  /** Newest first. */
  list(query: ListQuery<'/api/v1/runs'> = {}, options?: CallOptions): PagePromise<Schemas['Run']> {
    return list(this.http, '/api/v1/runs', { query }, options)
  }

  get(runId: string, options?: CallOptions): Promise<Schemas['Run']> {
    return this.http.request('GET', '/api/v1/runs/{run_id}', { path: { run_id: runId }, ...options })
  }

  /** The events of a run, oldest first. */
  events(
    runId: string,
    query: ListQuery<'/api/v1/runs/{run_id}/events'> = {},
    options?: CallOptions,
  ): PagePromise<Schemas['Event']> {
    return list(this.http, '/api/v1/runs/{run_id}/events', { path: { run_id: runId }, query }, options, 'after_seq')
  }

  /** The tasks of a run, newest first. */
  tasks(
    runId: string,
    query: ListQuery<'/api/v1/runs/{run_id}/tasks'> = {},
    options?: CallOptions,
  ): PagePromise<Schemas['Task']> {
    return list(this.http, '/api/v1/runs/{run_id}/tasks', { path: { run_id: runId }, query }, options)
  }

  /** The runs that a run has started, newest first. */
  children(
    runId: string,
    query: ListQuery<'/api/v1/runs/{run_id}/children'> = {},
    options?: CallOptions,
  ): PagePromise<Schemas['Run']> {
    return list(this.http, '/api/v1/runs/{run_id}/children', { path: { run_id: runId }, query }, options)
  }

  cancel(runId: string, { reason, ...options }: CancelOptions = {}): Promise<Schemas['RunEnded']> {
    const body = reason === undefined ? {} : { reason }
    return this.http.request('POST', '/api/v1/runs/{run_id}/cancel', { path: { run_id: runId }, body, ...options })
  }

  /** The output of a hosted run from the beginning, or after a frame; also of a run that has ended. */
  output(runId: string, options: OutputOptions = {}): AsyncGenerator<OutputFrame> {
    return output(this.http, runId, options)
  }
}
