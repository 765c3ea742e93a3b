import { gzipSync } from 'node:zlib'
import { readDocument } from '../openapi/document.ts'
import { newAgent } from '../support/api.ts'
import { OPERATOR_TOKEN, spawnService, UNLIMITED } from '../support/service.ts'
import { type Campaign, type CampaignResult, ServiceCampaign } from './campaign.ts'
import { hostileText, hostileValue, type Json, sampleOf } from './malformed.ts'

const CONNECTIONS = 24
const TIMEOUT_MS = 15_000
const PROGRESS_REQUESTS = 20_000
/** Responses that a correct service gives to bad calls; any other 5xx is a failure. */
const EXPECTED_5XX = new Set([503])

/** Malformed requests generated from the OpenAPI document: each must get a response that the specification allows. */
export const requests: Campaign = {
  describe: 'sends malformed requests generated from the OpenAPI document',
  rounds: 1_000_000,
  shortRounds: 10_000,
  run: (options) => new RequestCampaign(options).run(),
}

interface Operation {
  readonly method: string
  readonly path: string
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly schema: Json }[]
  readonly body: Json | undefined
}

interface Made {
  readonly method: string
  readonly url: string
  readonly headers: Record<string, string>
  readonly body: BodyInit | undefined
}

class RequestCampaign extends ServiceCampaign {
  private readonly random = this.options.random
  private operations!: readonly Operation[]
  /** Existing ids, so that requests get past the first checks. */
  private known: readonly string[] = []
  private agentKey!: string

  protected start() {
    return spawnService({ LOG_LEVEL: 'error', ...UNLIMITED })
  }

  protected async act(): Promise<CampaignResult['figures']> {
    await this.prepare()
    const before = this.resources()
    const startedAt = performance.now()
    let sent = 0
    const client = async () => {
      while (sent < this.options.rounds) {
        sent++
        if (sent % PROGRESS_REQUESTS === 0)
          this.options.progress(`${sent.toLocaleString('en')} of ${this.options.rounds.toLocaleString('en')} requests`)
        await this.sendOne()
      }
    }
    await Promise.all(Array.from({ length: CONNECTIONS }, client))
    const seconds = (performance.now() - startedAt) / 1000
    const after = this.resources()
    const alive = await this.service.api('GET', '/readyz')
    this.failures.expect('/readyz at the end', alive.status, 200)
    return {
      operations: this.operations.length,
      requests: sent,
      'requests/s': Math.round(sent / seconds),
      'responses by status': this.statusesText(),
      'memory before and after, MiB': `${Math.round(before.residentMiB)}, ${Math.round(after.residentMiB)}`,
      'open files before and after': `${before.descriptors}, ${after.descriptors}`,
    }
  }

  private async prepare(): Promise<void> {
    const { api } = this.service
    const { agentId, agentKey } = await newAgent(api)
    const run = await api('POST', '/api/ingest/v1/run/start', { agent_id: agentId }, { key: agentKey })
    const { json, operations } = await readDocument(this.service)
    this.operations = [...operations.values()].map(({ path, method, operation: { parameters = [], requestBody } }) =>
      inlined(json, { method, path, parameters, body: requestBody?.content['application/json']?.schema }),
    )
    this.known = [agentId, run.data.run_id]
    this.agentKey = agentKey
  }

  private async sendOne(): Promise<void> {
    const made = this.make()
    try {
      const response = await fetch(made.url, {
        method: made.method,
        headers: made.headers,
        ...(made.body !== undefined && { body: made.body }),
        signal: AbortSignal.timeout(TIMEOUT_MS),
      })
      this.countStatus(response.status)
      const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
      if (isStream) return await response.body?.cancel()
      const text = await response.text()
      if (response.status >= 500 && !EXPECTED_5XX.has(response.status)) this.report(made, `${response.status} ${text}`)
      else if (response.status >= 400 && !isErrorOf(made.url, text))
        this.report(made, `${response.status} without the error body of this endpoint: ${text}`)
    } catch (error) {
      // The client itself rejects a name or value that HTTP cannot carry.
      if (error instanceof TypeError) return
      this.report(made, String(error))
    }
  }

  private report(made: Made, what: string): void {
    const body = typeof made.body === 'string' ? made.body.slice(0, 300) : made.body === undefined ? '' : 'bytes'
    this.failures.add(
      `${made.method} ${made.url.slice(0, 300)} ${JSON.stringify(made.headers)} ${body}: ${what.slice(0, 300)}`,
    )
  }

  private make(): Made {
    const { random } = this
    const operation = random.pick(this.operations)
    const headers: Record<string, string> = {}
    const key = random.bool(0.9) ? this.keyFor(operation) : random.pick([undefined, 'svc_ws_x', hostileText(random)])
    if (key !== undefined) headers.authorization = `${random.bool(0.95) ? 'Bearer ' : ''}${key}`
    if (random.bool(0.03)) headers['idempotency-key'] = hostileText(random)
    if (random.bool(0.02)) headers['x-request-id'] = hostileText(random)
    if (random.bool(0.02)) headers['last-event-id'] = hostileText(random)
    return {
      method: random.bool(0.97) ? operation.method : random.pick(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']),
      url: this.service.url + this.pathOf(operation) + this.queryOf(operation),
      headers,
      body: operation.method === 'get' ? undefined : this.bodyOf(operation, headers),
    }
  }

  private keyFor({ path }: Operation): string {
    if (path.startsWith('/api/ingest/')) return this.agentKey
    return path.startsWith('/api/v1/workspaces') ? OPERATOR_TOKEN : this.service.workspaceKey
  }

  private pathOf({ path, parameters }: Operation): string {
    return path.replaceAll(/\{(\w+)\}/g, (_, name) => {
      if (this.random.bool(0.5)) return this.random.pick(this.known)
      const schema = parameters.find((each) => each.name === name)?.schema ?? { type: 'string' }
      return encodeURIComponent(
        asSent(this.random.bool(0.5) ? hostileText(this.random) : sampleOf(schema, this.random)),
      )
    })
  }

  private queryOf({ parameters }: Operation): string {
    const query = new URLSearchParams()
    for (const { name, schema } of parameters.filter((each) => each.in === 'query')) {
      if (this.random.bool(0.5)) continue
      query.append(name, asSent(this.random.bool(0.4) ? hostileText(this.random) : sampleOf(schema, this.random)))
    }
    if (this.random.bool(0.05)) query.append(hostileText(this.random), '1')
    return query.size === 0 ? '' : `?${query}`
  }

  private bodyOf({ body }: Operation, headers: Record<string, string>): BodyInit | undefined {
    const { random } = this
    if (random.bool(0.03)) return undefined
    headers['content-type'] = random.bool(0.95)
      ? 'application/json'
      : random.pick([
          'text/plain',
          'multipart/form-data; boundary=x',
          'application/x-www-form-urlencoded',
          hostileText(random),
        ])
    const value =
      body === undefined || random.bool(0.1) ? hostileValue(random) : sampleOf(body, random, 0.15, this.known)
    let text = JSON.stringify(value) ?? ''
    if (random.bool(0.05)) text = text.slice(0, random.int(0, text.length))
    if (random.bool(0.02)) text = `${'['.repeat(random.int(1, 5_000))}${text}`
    if (random.bool(0.05)) {
      headers['content-encoding'] = random.pick(['gzip', 'zstd', 'br', 'identity', 'deflate'])
      const bytes = new Uint8Array(random.bool() ? gzipSync(text) : random.bytes(random.int(0, 200)))
      if (random.bool() && bytes.length > 0) bytes[random.int(0, bytes.length - 1)] ^= 1 << random.int(0, 7)
      return bytes
    }
    if (random.bool(0.02)) return new Uint8Array([...Buffer.from(text), ...random.bytes(random.int(1, 20))])
    return text
  }
}

/** The value as text for a URL, which cannot contain lone surrogates. */
function asSent(value: unknown): string {
  return (typeof value === 'object' ? (JSON.stringify(value) ?? '') : String(value)).toWellFormed()
}

/**
 * Whether a body of an error has the shape that callers of the URL expect: OTLP and Langfuse have their own, and so has the ClickHouse
 * interface.
 */
function isErrorOf(url: string, text: string): boolean {
  const { pathname } = new URL(url)
  if (text === '' || pathname.includes('/clickhouse')) return true
  try {
    const body = JSON.parse(text)
    if (pathname.startsWith('/openai/')) return typeof body.error?.type === 'string' && 'param' in body.error
    if (pathname.startsWith('/api/public/') && typeof body.message === 'string') return true
    return isEnvelope(body) || (pathname.startsWith('/otlp/') && isRpcStatus(body))
  } catch {
    return false
  }
}

function isEnvelope({ data, error, ...rest }: Json): boolean {
  const { code, message } = (error ?? {}) as Json
  return data === null && typeof code === 'string' && typeof message === 'string' && Object.keys(rest).length === 0
}

function isRpcStatus({ code, message, ...rest }: Json): boolean {
  return Number.isInteger(code) && typeof message === 'string' && Object.keys(rest).length === 0
}

/** A part of the document with references replaced by the named schemas; no request schema is recursive. */
function inlined<T>(document: Json, part: T): T {
  if (Array.isArray(part)) return part.map((item) => inlined(document, item)) as T
  if (typeof part !== 'object' || part === null) return part
  const { $ref, ...members } = part as Json
  if (typeof $ref === 'string') {
    const { schemas } = document.components as { schemas: Json }
    return inlined(document, { ...(schemas[$ref.split('/').at(-1)!] as Json), ...members }) as T
  }
  return Object.fromEntries(Object.entries(members).map(([name, member]) => [name, inlined(document, member)])) as T
}
