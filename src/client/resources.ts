import type { components } from './generated/api.ts'
import { type Http, NO_TIMEOUT } from './http.ts'
import type { JsonObject } from './json.ts'
import { type ListQuery, list, type PagePromise } from './page.ts'
import type { CallOptions, EditOptions, Loose } from './request.ts'
import { type OutputFrame, type OutputOptions, output } from './streams.ts'

type Schemas = components['schemas']
type QueryOfRun<Part extends 'events' | 'conversation' | 'tasks' | 'scores' | 'children'> =
  ListQuery<`/api/v1/runs/{run_id}/${Part}`>

export interface CancelOptions extends CallOptions {
  readonly reason?: string | undefined
}

/** Runs of external and hosted agents. */
export class Runs {
  constructor(private readonly http: Http) {}

  /** Newest first. `q` searches the texts of runs; `match` of each run then says where it was found. */
  list(query: ListQuery<'/api/v1/runs'> = {}, options?: CallOptions): PagePromise<Schemas['ListedRun']> {
    return list(this.http, '/api/v1/runs', { query }, options)
  }

  get(runId: string, options?: CallOptions): Promise<Schemas['Run']> {
    return this.http.request('GET', '/api/v1/runs/{run_id}', { path: { run_id: runId }, ...options })
  }

  /** The events of a run, oldest first. */
  events(runId: string, query: QueryOfRun<'events'> = {}, options?: CallOptions): PagePromise<Schemas['Event']> {
    return list(this.http, '/api/v1/runs/{run_id}/events', { path: { run_id: runId }, query }, options, 'after_seq')
  }

  /** What was said in a run, whatever format it was reported in, oldest first. */
  conversation(
    runId: string,
    query: QueryOfRun<'conversation'> = {},
    options?: CallOptions,
  ): PagePromise<Schemas['ConversationMessage']> {
    return list(this.http, '/api/v1/runs/{run_id}/conversation', { path: { run_id: runId }, query }, options)
  }

  /** The tasks of a run, newest first. */
  tasks(runId: string, query: QueryOfRun<'tasks'> = {}, options?: CallOptions): PagePromise<Schemas['Task']> {
    return list(this.http, '/api/v1/runs/{run_id}/tasks', { path: { run_id: runId }, query }, options)
  }

  /** The scores of a run and of its parts, newest first. */
  scores(runId: string, query: QueryOfRun<'scores'> = {}, options?: CallOptions): PagePromise<Schemas['Score']> {
    return list(this.http, '/api/v1/runs/{run_id}/scores', { path: { run_id: runId }, query }, options)
  }

  /** The runs that a run has started, newest first. */
  children(
    runId: string,
    query: QueryOfRun<'children'> = {},
    options?: CallOptions,
  ): PagePromise<Schemas['ListedRun']> {
    return list(this.http, '/api/v1/runs/{run_id}/children', { path: { run_id: runId }, query }, options)
  }

  /** Replaces the tags or the metadata. */
  update(runId: string, changes: Loose<Schemas['EditRun']>, options?: EditOptions): Promise<Schemas['Run']> {
    return this.http.request('PATCH', '/api/v1/runs/{run_id}', { path: { run_id: runId }, body: changes, ...options })
  }

  cancel(runId: string, { reason, ...options }: CancelOptions = {}): Promise<Schemas['RunEnded']> {
    const path = { run_id: runId }
    return this.http.request('POST', '/api/v1/runs/{run_id}/cancel', { path, body: { reason }, ...options })
  }

  /** Deletes a run that has ended, from every store: the answer comes before it is {@link erasure} is `done`. */
  delete(runId: string, options?: CallOptions): Promise<Schemas['RunErasure']> {
    return this.http.request('DELETE', '/api/v1/runs/{run_id}', { path: { run_id: runId }, ...options })
  }

  /** Deletes a score from every store, like {@link delete}. */
  deleteScore(runId: string, scoreId: string, options?: CallOptions): Promise<Schemas['RunErasure']> {
    const path = { run_id: runId, score_id: scoreId }
    return this.http.request('DELETE', '/api/v1/runs/{run_id}/scores/{score_id}', { path, ...options })
  }

  /** How far the deletion of a run or a score is. */
  erasure(erasureId: string, options?: CallOptions): Promise<Schemas['RunErasure']> {
    return this.http.request('GET', '/api/v1/erasures/{erasure_id}', { path: { erasure_id: erasureId }, ...options })
  }

  /** The output of a hosted run from the beginning, or after a frame; also of a run that has ended. */
  output(runId: string, options: OutputOptions = {}): AsyncGenerator<OutputFrame> {
    return output(this.http, runId, options)
  }
}

/** The state of a hosted run when the call returns; `status` tells the cases apart. */
export type Outcome =
  | Schemas['RunCompleted']
  | Schemas['RunFailed']
  | Schemas['AwaitingApproval']
  | Schemas['AwaitingInput']
  | Schemas['RunContinues']

export interface InvokeOptions extends CallOptions {
  readonly promptVariables?: Readonly<Record<string, string>> | undefined
  readonly sessionId?: string | undefined
  readonly startSession?: boolean | undefined
  readonly externalUserId?: string | undefined
  readonly history?: readonly Schemas['HistoryMessage'][] | undefined
  readonly parentRunId?: string | undefined
  /** Return at once; the run continues in the background. */
  readonly background?: boolean | undefined
  /** Return the output as it is produced. */
  readonly stream?: boolean | undefined
}

/** Agents of the workspace. Managing them needs a workspace key. */
export class Agents {
  constructor(private readonly http: Http) {}

  /** Newest first. */
  list(query: ListQuery<'/api/v1/agents'> = {}, options?: CallOptions): PagePromise<Schemas['Agent']> {
    return list(this.http, '/api/v1/agents', { query }, options)
  }

  get(agentId: string, options?: CallOptions): Promise<Schemas['Agent']> {
    return this.http.request('GET', '/api/v1/agents/{agent_id}', { path: { agent_id: agentId }, ...options })
  }

  create(agent: Loose<Schemas['CreateAgent']>, options?: CallOptions): Promise<Schemas['Agent']> {
    return this.http.request('POST', '/api/v1/agents', { body: agent, ...options })
  }

  update(agentId: string, changes: Loose<Schemas['EditAgent']>, options?: EditOptions): Promise<Schemas['Agent']> {
    const path = { agent_id: agentId }
    return this.http.request('PATCH', '/api/v1/agents/{agent_id}', { path, body: changes, ...options })
  }

  /** Ends the keys of an agent; its runs stay readable, and {@link unarchive} brings it back. */
  archive(agentId: string, options?: EditOptions): Promise<Schemas['ArchivedAgent']> {
    return this.http.request('DELETE', '/api/v1/agents/{agent_id}', { path: { agent_id: agentId }, ...options })
  }

  /** Restores an archived agent with the status that it had before. Its keys stay revoked. */
  unarchive(agentId: string, options?: CallOptions): Promise<Schemas['Agent']> {
    const given = { path: { agent_id: agentId }, body: {} }
    return this.http.request('POST', '/api/v1/agents/{agent_id}/restore', { ...given, ...options })
  }

  /** The versions of an agent without their configurations, newest first. */
  versions(
    agentId: string,
    query: ListQuery<'/api/v1/agents/{agent_id}/versions'> = {},
    options?: CallOptions,
  ): PagePromise<Schemas['AgentVersionSummary']> {
    return list(this.http, '/api/v1/agents/{agent_id}/versions', { path: { agent_id: agentId }, query }, options)
  }

  /** A version of an agent with its configuration; a run has its number in `agent_version`. */
  version(agentId: string, version: number, options?: CallOptions): Promise<Schemas['AgentVersion']> {
    const path = { agent_id: agentId, version }
    return this.http.request('GET', '/api/v1/agents/{agent_id}/versions/{version}', { path, ...options })
  }

  /** Makes the configuration of a version the agent's next version. */
  restore(agentId: string, version: number, options?: CallOptions): Promise<Schemas['Agent']> {
    const given = { path: { agent_id: agentId, version }, body: {} }
    return this.http.request('POST', '/api/v1/agents/{agent_id}/versions/{version}/restore', { ...given, ...options })
  }

  /** Runs a hosted agent: until it ends or waits for a person, or as a stream of its output. */
  invoke(agentId: string, input: object, options: InvokeOptions & { stream: true }): AsyncGenerator<OutputFrame>
  invoke(agentId: string, input?: object, options?: InvokeOptions & { stream?: false }): Promise<Outcome>
  invoke(agentId: string, input: object = {}, { stream, ...options }: InvokeOptions = {}) {
    return stream === true ? this.stream(agentId, input, options) : this.start(agentId, input, options)
  }

  private start(agentId: string, input: object, options: InvokeOptions): Promise<Outcome> {
    const { promptVariables, sessionId, startSession, externalUserId, history, parentRunId, background, ...rest } =
      options
    return this.http.request('POST', '/api/v1/agents/{agent_id}/invoke', {
      path: { agent_id: agentId },
      body: {
        input: input as JsonObject,
        prompt_variables: promptVariables,
        session_id: sessionId,
        start_session: startSession,
        external_user_id: externalUserId,
        history: history && [...history],
        parent_run_id: parentRunId,
        background,
      },
      ...unlimited(rest),
    })
  }

  /** Starts the run in the background first, so that a lost connection does not start a second one. */
  private async *stream(agentId: string, input: object, options: InvokeOptions): AsyncGenerator<OutputFrame> {
    const { run_id } = await this.start(agentId, input, { ...options, background: true })
    yield* output(this.http, run_id, { signal: options.signal })
  }
}

export interface DecisionOptions extends CallOptions {
  /** Return at once; the run continues. */
  readonly background?: boolean | undefined
}

export interface RejectOptions extends DecisionOptions {
  /** The reason; stored, and passed to the model after a rejection. */
  readonly comment?: string | undefined
}

export interface ApproveOptions extends RejectOptions {
  /** Arguments to call the tool with instead of those shown. */
  readonly editedInput?: JsonObject | undefined
}

/** Calls of tools that wait for a person. */
export class Approvals {
  constructor(private readonly http: Http) {}

  /** Newest first. */
  list(query: ListQuery<'/api/v1/approvals'> = {}, options?: CallOptions): PagePromise<Schemas['Approval']> {
    return list(this.http, '/api/v1/approvals', { query }, options)
  }

  get(approvalId: string, options?: CallOptions): Promise<Schemas['ApprovalDetails']> {
    const path = { approval_id: approvalId }
    return this.http.request('GET', '/api/v1/approvals/{approval_id}', { path, ...options })
  }

  /** Approves a call. @returns how the run continues, as `agents.invoke` does */
  approve(approvalId: string, options: ApproveOptions = {}): Promise<Outcome> {
    const { comment, editedInput, background, ...rest } = options
    const given = { path: { approval_id: approvalId }, body: { comment, edited_input: editedInput, background } }
    return this.http.request('POST', '/api/v1/approvals/{approval_id}/approve', { ...given, ...unlimited(rest) })
  }

  /** Rejects a call; the model gets the comment. */
  reject(approvalId: string, { comment, background, ...options }: RejectOptions = {}): Promise<Outcome> {
    const given = { path: { approval_id: approvalId }, body: { comment, background } }
    return this.http.request('POST', '/api/v1/approvals/{approval_id}/reject', { ...given, ...unlimited(options) })
  }
}

/** Questions of models that wait for a person. */
export class InputRequests {
  constructor(private readonly http: Http) {}

  /** Newest first. */
  list(query: ListQuery<'/api/v1/input-requests'> = {}, options?: CallOptions): PagePromise<Schemas['InputRequest']> {
    return list(this.http, '/api/v1/input-requests', { query }, options)
  }

  get(requestId: string, options?: CallOptions): Promise<Schemas['InputRequestDetails']> {
    const path = { request_id: requestId }
    return this.http.request('GET', '/api/v1/input-requests/{request_id}', { path, ...options })
  }

  /** Answers a question. @returns how the run continues, as `agents.invoke` does */
  answer(requestId: string, answer: string, { background, ...options }: DecisionOptions = {}): Promise<Outcome> {
    const given = { path: { request_id: requestId }, body: { answer, background } }
    return this.http.request('POST', '/api/v1/input-requests/{request_id}/answer', { ...given, ...unlimited(options) })
  }
}

/** Options of a call that lasts as long as a run: without a timeout, unless the caller gives one. */
function unlimited({ timeoutMs = NO_TIMEOUT, ...options }: CallOptions): CallOptions {
  return { timeoutMs, ...options }
}
