import type { TestService } from './service.ts'

/** Batches for tests, as the SDKs of Langfuse send them. */

export const LANGFUSE_START_MS = Date.UTC(2026, 0, 31, 9, 30)

let sent = 0

/** A time so many milliseconds after the start. */
export function at(ms: number): string {
  return new Date(LANGFUSE_START_MS + ms).toISOString()
}

export interface TestEvent {
  readonly id: string
  readonly type: string
  readonly timestamp: string
  readonly body: Record<string, unknown>
}

/** An event with an id of its own, sent so many milliseconds after the start. */
export function event(type: string, body: Record<string, unknown>, ms = sent++): TestEvent {
  return { id: crypto.randomUUID(), type, timestamp: at(ms), body }
}

export interface BatchAnswer {
  readonly status: number
  readonly headers: Headers
  readonly successes: readonly { id: string; status: number }[]
  readonly errors: readonly { id: string; status: number; message: string; error: string }[]
  readonly body: Record<string, unknown>
}

export function basicAuth(key: string, publicKey = 'pk-lf-test'): string {
  return `Basic ${Buffer.from(`${publicKey}:${key}`).toString('base64')}`
}

type Target = Pick<TestService, 'url' | 'workspaceKey'>

/** Calls a route of `/api/public` with the key as the secret key of the SDK. */
export async function callLangfuse(
  { url, workspaceKey }: Target,
  method: string,
  path: string,
  {
    body,
    key = workspaceKey,
    headers = {},
  }: { body?: unknown; key?: string | null | undefined; headers?: Record<string, string> } = {},
): Promise<Response> {
  return fetch(`${url}/api/public${path}`, {
    method,
    headers: {
      ...(key !== null && { authorization: basicAuth(key) }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
}

export async function sendBatch(service: Target, batch: readonly unknown[], key?: string): Promise<BatchAnswer> {
  const response = await callLangfuse(service, 'POST', '/ingestion', { body: { batch, metadata: {} }, key })
  const body = (await response.json()) as Record<string, unknown>
  const { successes = [], errors = [] } = body as Partial<BatchAnswer>
  return { status: response.status, headers: response.headers, successes, errors, body }
}
