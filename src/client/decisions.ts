import type { Outcome } from './agents.ts'
import type { components } from './generated/api.ts'
import { type Http, NO_TIMEOUT } from './http.ts'
import type { JsonObject } from './json.ts'
import { type ListQuery, list, type PagePromise } from './page.ts'
import type { CallOptions } from './request.ts'

type Schemas = components['schemas']

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

  get(approvalId: string, options?: CallOptions): Promise<Schemas['Approval']> {
    const path = { approval_id: approvalId }
    return this.http.request('GET', '/api/v1/approvals/{approval_id}', { path, ...options })
  }

  /** Approves a call. @returns how the run continues, as `agents.invoke` does */
  approve(
    approvalId: string,
    { comment, editedInput, background, timeoutMs = NO_TIMEOUT, ...options }: ApproveOptions = {},
  ): Promise<Outcome> {
    const path = { approval_id: approvalId }
    const body = { comment, edited_input: editedInput, background }
    return this.http.request('POST', '/api/v1/approvals/{approval_id}/approve', { path, body, timeoutMs, ...options })
  }

  /** Rejects a call; the model gets the comment. */
  reject(
    approvalId: string,
    { comment, background, timeoutMs = NO_TIMEOUT, ...options }: RejectOptions = {},
  ): Promise<Outcome> {
    const path = { approval_id: approvalId }
    const body = { comment, background }
    return this.http.request('POST', '/api/v1/approvals/{approval_id}/reject', { path, body, timeoutMs, ...options })
  }
}

/** Questions of models that wait for a person. */
export class InputRequests {
  constructor(private readonly http: Http) {}

  /** Newest first. */
  list(query: ListQuery<'/api/v1/input-requests'> = {}, options?: CallOptions): PagePromise<Schemas['InputRequest']> {
    return list(this.http, '/api/v1/input-requests', { query }, options)
  }

  get(requestId: string, options?: CallOptions): Promise<Schemas['InputRequest']> {
    const path = { request_id: requestId }
    return this.http.request('GET', '/api/v1/input-requests/{request_id}', { path, ...options })
  }

  /** Answers a question. @returns how the run continues, as `agents.invoke` does */
  answer(
    requestId: string,
    answer: string,
    { background, timeoutMs = NO_TIMEOUT, ...options }: DecisionOptions = {},
  ): Promise<Outcome> {
    const path = { request_id: requestId }
    const body = { answer, background }
    return this.http.request('POST', '/api/v1/input-requests/{request_id}/answer', {
      ...{ path, body, timeoutMs },
      ...options,
    })
  }
}
