import { ExportResponse, encodeMessage, LogsData, RpcStatus, TracesData } from './otlp-proto.ts'
import type { TestService } from './service.ts'

/** Exports for tests, in the names of OTLP's JSON encoding. */

export type Attribute = { readonly key: string; readonly value: object }

export function attribute(key: string, value: string | number | boolean): Attribute {
  const kind = typeof value === 'string' ? 'stringValue' : typeof value === 'boolean' ? 'boolValue' : undefined
  return { key, value: { [kind ?? (Number.isInteger(value) ? 'intValue' : 'doubleValue')]: value } }
}

export function attributesOf(values: Record<string, string | number | boolean>): Attribute[] {
  return Object.entries(values).map(([key, value]) => attribute(key, value))
}

export function randomHex(bytes: number): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString('hex')
}

export const START_MS = Date.UTC(2026, 0, 31, 9, 30)

/** A span of 250 ms with ids of its own. */
export function span(values: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    traceId: randomHex(16),
    spanId: randomHex(8),
    name: 'a span',
    startTimeUnixNano: `${START_MS}000000`,
    endTimeUnixNano: `${START_MS + 250}000000`,
    ...values,
  }
}

export function tracesOf(spans: readonly object[], resource: Record<string, string> = { 'service.name': 'an agent' }) {
  return { resourceSpans: [{ resource: { attributes: attributesOf(resource) }, scopeSpans: [{ spans }] }] }
}

export function logsOf(
  logRecords: readonly object[],
  resource: Record<string, string> = { 'service.name': 'an agent' },
) {
  return { resourceLogs: [{ resource: { attributes: attributesOf(resource) }, scopeLogs: [{ logRecords }] }] }
}

/** The same export in protobuf, where ids are bytes. */
export function inProtobuf(data: object): Uint8Array {
  const withBytes = JSON.parse(JSON.stringify(data), (key, value) =>
    ['traceId', 'spanId', 'parentSpanId'].includes(key) ? { ...Buffer.from(value, 'hex').toJSON().data } : value,
  )
  const fixed = JSON.parse(JSON.stringify(withBytes), (key, value) =>
    ['traceId', 'spanId', 'parentSpanId'].includes(key) ? Buffer.from(Object.values<number>(value)) : value,
  )
  return encodeMessage('resourceLogs' in data ? LogsData : TracesData, fixed)
}

export interface Exported {
  readonly status: number
  readonly headers: Headers
  /** The export response or the `google.rpc.Status`. */
  readonly body: Record<string, unknown>
  readonly lastSeq: number | null
}

export interface ExportOptions {
  readonly headers?: Record<string, string>
  readonly key?: string | null
}

/** Sends an export: bytes as protobuf, an object as JSON. */
export async function sendExport(
  service: Pick<TestService, 'url' | 'workspaceKey'>,
  signal: 'traces' | 'logs' | 'metrics',
  data: object | string,
  { headers = {}, key = service.workspaceKey }: ExportOptions = {},
): Promise<Exported> {
  const isProtobuf = data instanceof Uint8Array
  const response = await fetch(`${service.url}/otlp/v1/${signal}`, {
    method: 'POST',
    headers: {
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      'content-type': isProtobuf ? 'application/x-protobuf' : 'application/json',
      ...headers,
    },
    body: isProtobuf ? Uint8Array.from(data) : typeof data === 'string' ? data : JSON.stringify(data),
  })
  const bytes = await response.bytes()
  const isJson = response.headers.get('content-type') === 'application/json'
  const message = response.ok ? ExportResponse : RpcStatus
  const body = isJson
    ? JSON.parse(Buffer.from(bytes).toString())
    : message.toObject(message.decode(bytes), { longs: String })
  const lastSeq = response.headers.get('x-last-seq')
  return {
    status: response.status,
    headers: response.headers,
    body,
    lastSeq: lastSeq === null ? null : Number(lastSeq),
  }
}

type Reader = Pick<TestService, 'api'>

/** The runs of a trace, a session or another external id. */
export async function runsOf({ api }: Reader, externalRunId: unknown) {
  return (
    await api('GET', `/api/v1/runs?external_run_id=${encodeURIComponent(`${externalRunId}`)}&include=input,output`)
  ).data.items
}

/** The tasks of the first of these runs. */
export async function tasksOf(service: Reader, externalRunId: unknown) {
  const [{ run_id }] = await runsOf(service, externalRunId)
  return (await service.api('GET', `/api/v1/runs/${run_id}/tasks`)).data.items
}

/** The events of the first of these runs. */
export async function eventsOf(service: Reader, externalRunId: unknown) {
  const [{ run_id }] = await runsOf(service, externalRunId)
  return (await service.api('GET', `/api/v1/runs/${run_id}/events`)).data.items
}
