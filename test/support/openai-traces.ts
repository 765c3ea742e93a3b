import { randomHex } from './otlp.ts'
import type { TestService } from './service.ts'

/** What the exporter of the OpenAI Agents SDK sends, for tests. */

export const STARTED = '2026-01-31T09:30:00.000Z'
export const ENDED = '2026-01-31T09:30:00.250Z'

type Json = Record<string, unknown>

export const traceId = () => `trace_${randomHex(16)}`

export function traceItem(id: string, more: Json = {}) {
  return { object: 'trace', id, workflow_name: 'Support', group_id: null, metadata: {}, ...more }
}

export function spanItem(trace: string, data: unknown, more: Json = {}) {
  return {
    object: 'trace.span',
    id: `span_${randomHex(12)}`,
    trace_id: trace,
    parent_id: null,
    started_at: STARTED,
    ended_at: ENDED,
    span_data: data,
    error: null,
    ...more,
  }
}

interface Ingested {
  readonly status: number
  readonly headers: Headers
  /** Null if there is none. */
  readonly error: Json | null
}

export async function ingest(
  { url, workspaceKey }: Pick<TestService, 'url' | 'workspaceKey'>,
  body: object | string,
  { key = workspaceKey, headers = {} }: { key?: string | null; headers?: Record<string, string> } = {},
): Promise<Ingested> {
  const response = await fetch(`${url}/openai/v1/traces/ingest`, {
    method: 'POST',
    headers: {
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      'content-type': 'application/json',
      'openai-beta': 'traces=v1',
      ...headers,
    },
    body: body instanceof Uint8Array ? Uint8Array.from(body) : typeof body === 'string' ? body : JSON.stringify(body),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, error: text === '' ? null : JSON.parse(text).error }
}
