import { BaseClient } from './client.ts'
import { type ClientOptions, WEB } from './options.ts'

export type { QueryOptions, QueryParams, QueryResult } from './client.ts'
export { NoResponseError, ReportError, ServiceError } from './errors.ts'
export type { components, paths } from './generated/api.ts'
export type { Call } from './http.ts'
export type { ClientOptions } from './options.ts'
export type { Page, PagePromise } from './page.ts'
export type { ReportStats } from './report-stats.ts'
export type { CallOptions, EditOptions } from './request.ts'
export type {
  Agents,
  Approvals,
  ApproveOptions,
  CancelOptions,
  DecisionOptions,
  InputRequests,
  InvokeOptions,
  Outcome,
  RejectOptions,
  Runs,
} from './resources.ts'
export type { EndOptions, EventOptions, Level, Run, RunOptions, Task, TaskOptions } from './run.ts'
export type { ScoreArguments, ScoreOptions, ScoreValue } from './score.ts'
export type { Activity, FeedFilter, FeedOptions, Gap, OutputFrame, OutputOptions } from './streams.ts'

/** A client of the Agent Run Service, for browsers: docs/client.md. */
export class Client extends BaseClient {
  /** @throws Error when an option is missing or wrong */
  constructor(options: ClientOptions = {}) {
    super(options, WEB)
  }
}
