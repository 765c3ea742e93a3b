import type { components } from './generated/api.ts'
import { type Http, NO_TIMEOUT } from './http.ts'
import type { JsonObject } from './json.ts'
import { type OutputFrame, output } from './output.ts'
import { type ListQuery, list, type PagePromise } from './page.ts'
import type { CallOptions } from './request.ts'

type Schemas = components['schemas']

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

  create(agent: Schemas['CreateAgent'], options?: CallOptions): Promise<Schemas['Agent']> {
    return this.http.request('POST', '/api/v1/agents', { body: agent, ...options })
  }

  update(agentId: string, changes: Schemas['EditAgent'], options?: CallOptions): Promise<Schemas['Agent']> {
    const path = { agent_id: agentId }
    return this.http.request('PATCH', '/api/v1/agents/{agent_id}', { path, body: changes, ...options })
  }

  /** Ends the keys of an agent; its runs stay readable. */
  archive(agentId: string, options?: CallOptions): Promise<Schemas['ArchivedAgent']> {
    return this.http.request('DELETE', '/api/v1/agents/{agent_id}', { path: { agent_id: agentId }, ...options })
  }

  /** Runs a hosted agent: until it ends or waits for a person, or as a stream of its output. */
  invoke(agentId: string, input: object, options: InvokeOptions & { stream: true }): AsyncGenerator<OutputFrame>
  invoke(agentId: string, input?: object, options?: InvokeOptions & { stream?: false }): Promise<Outcome>
  invoke(agentId: string, input: object = {}, options: InvokeOptions = {}) {
    return options.stream === true ? this.stream(agentId, input, options) : this.start(agentId, input, options)
  }

  private start(agentId: string, input: object, options: InvokeOptions): Promise<Outcome> {
    const { promptVariables, sessionId, startSession, externalUserId, history, parentRunId, background } = options
    const { signal, timeoutMs = NO_TIMEOUT, maxRetries, idempotencyKey } = options
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
      ...{ signal, timeoutMs, maxRetries, idempotencyKey },
    })
  }

  /** Starts the run in the background first, so that a lost connection does not start a second one. */
  private async *stream(agentId: string, input: object, options: InvokeOptions): AsyncGenerator<OutputFrame> {
    const { run_id } = await this.start(agentId, input, { ...options, background: true })
    yield* output(this.http, run_id, { signal: options.signal })
  }
}
