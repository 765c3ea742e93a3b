import type { Client } from '../../../client/index.ts'
import type { JsonObject } from '../../../client/json.ts'
import type { Outcome, PlannedEvent, PlannedTask, RunPlan } from '../plan.ts'
import type { Sender } from './sender.ts'

/** How often ended spans are exported during a run. */
export const EXPORT_MS = 2_000
const NANOS_PER_MS = 1_000_000n
const CLIENT = 3
const INTERNAL = 1
const FAILED = 2

interface Span {
  readonly spanId: string
  readonly parentSpanId: string | undefined
  readonly name: string
  readonly kind: number
  readonly startedAt: number
  readonly attributes: JsonObject
  readonly events: SpanEvent[]
  readonly error?: string | undefined
}

interface SpanEvent {
  readonly name: string
  readonly timeUnixNano: string
  readonly attributes: readonly object[]
}

/** Reports as a program with an OpenTelemetry SDK does: spans that have ended, from time to time. */
export function otlpSender(client: Client, service: string, exportMs: number): Sender {
  return {
    async start(plan, _parent, at) {
      const trace = new Trace(client, service, plan, at)
      return {
        runId: trace.traceId,
        add: async (moment, now) => {
          if (moment.kind === 'task') trace.begin(moment.task, moment.parent, now)
          else if (moment.kind === 'event') trace.record(moment.event, moment.task, now)
          else trace.finish(moment.task, now)
          if (now - trace.exportedAt >= exportMs) await trace.export(now)
        },
        end: (outcome, now) => trace.end(outcome, now),
      }
    },
  }
}

class Trace {
  readonly traceId = hex(16)
  private readonly root: Span
  private readonly open = new Map<PlannedTask, Span>()
  private ended: object[] = []
  exportedAt: number

  constructor(
    private readonly client: Client,
    private readonly service: string,
    private readonly plan: RunPlan,
    at: number,
  ) {
    this.exportedAt = at
    const { sessionId, externalUserId, tags, input } = plan
    this.root = {
      spanId: hex(8),
      parentSpanId: undefined,
      name: `invoke_agent ${service}`,
      kind: INTERNAL,
      startedAt: at,
      events: [],
      attributes: {
        'gen_ai.operation.name': 'invoke_agent',
        'gen_ai.agent.name': service,
        'session.id': sessionId,
        'user.id': externalUserId,
        'tag.tags': tags,
        'input.value': JSON.stringify(input),
      },
    }
  }

  begin(task: PlannedTask, parent: PlannedTask | undefined, at: number): void {
    const attributes = { 'input.value': textOf(task.input), 'output.value': textOf(task.output) }
    const span = { spanId: hex(8), parentSpanId: this.spanOf(parent).spanId, name: task.name, kind: INTERNAL }
    this.open.set(task, { ...span, startedAt: at, attributes, events: [], error: task.error })
  }

  /** A call of a model or a tool is a span of its own; anything else an event of the span around it. */
  record({ type, level, payload, ms }: PlannedEvent, task: PlannedTask | undefined, at: number): void {
    const around = this.spanOf(task)
    // The span of the call has its start already.
    if (type === 'tool.call.started') return
    if (type !== 'llm.call' && type !== 'tool.call.finished') {
      const attributes = attributesOf(
        level === 'error' ? { 'exception.message': payload.message, ...payload } : payload,
      )
      around.events.push({ name: level === 'error' ? 'exception' : type, timeUnixNano: nanos(at), attributes })
      return
    }
    const isTool = type === 'tool.call.finished'
    const name = isTool ? `execute_tool ${payload['gen_ai.tool.name']}` : `chat ${payload['gen_ai.request.model']}`
    const error = payload['error.message']
    const { latency_ms: _latency, ...attributes } = payload
    const span = { spanId: hex(8), parentSpanId: around.spanId, name, kind: CLIENT, startedAt: at - ms, events: [] }
    this.close({ ...span, attributes, error: typeof error === 'string' ? error : undefined }, at)
  }

  finish(task: PlannedTask, at: number): void {
    const span = this.open.get(task)
    if (span !== undefined && task.isSkipped !== true) this.close(span, at)
  }

  end(outcome: Outcome, at: number): Promise<void> {
    const { root } = this
    const output = outcome.status === 'completed' ? { 'output.value': JSON.stringify(outcome.output) } : {}
    const error = outcome.status === 'failed' ? outcome.message : undefined
    if (error !== undefined && outcome.status === 'failed')
      root.events.push({
        name: 'exception',
        timeUnixNano: nanos(at),
        attributes: attributesOf({ 'exception.message': error, ...outcome.detail }),
      })
    this.close({ ...root, attributes: { ...root.attributes, ...output }, error }, at)
    return this.export(at)
  }

  private spanOf(task: PlannedTask | undefined): Span {
    return (task === undefined ? undefined : this.open.get(task)) ?? this.root
  }

  private close({ startedAt, attributes, error, ...span }: Span, at: number): void {
    this.ended.push({
      ...span,
      traceId: this.traceId,
      startTimeUnixNano: nanos(startedAt),
      endTimeUnixNano: nanos(at),
      attributes: attributesOf(attributes),
      status: error === undefined ? {} : { code: FAILED, message: error },
    })
  }

  async export(at: number): Promise<void> {
    this.exportedAt = at
    if (this.ended.length === 0) return
    const spans = this.ended
    this.ended = []
    const resource = {
      attributes: attributesOf({
        'service.name': this.service,
        'telemetry.sdk.language': 'python',
        ...this.plan.metadata,
      }),
    }
    const body = { resourceSpans: [{ resource, scopeSpans: [{ scope: { name: 'larkspur.agents' }, spans }] }] }
    await this.client.send({ path: '/otlp/v1/traces', body })
  }
}

function attributesOf(values: JsonObject): object[] {
  return Object.entries(values).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: anyValue(value) }],
  )
}

function anyValue(value: unknown): object {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  if (typeof value === 'number') return Number.isInteger(value) ? { intValue: value } : { doubleValue: value }
  const isTexts = Array.isArray(value) && value.every((each) => typeof each === 'string')
  return isTexts ? { arrayValue: { values: value.map(anyValue) } } : { stringValue: JSON.stringify(value) }
}

function textOf(value: JsonObject | undefined): string | undefined {
  return value === undefined ? undefined : JSON.stringify(value)
}

function nanos(at: number): string {
  return String(BigInt(Math.round(at)) * NANOS_PER_MS)
}

function hex(bytes: number): string {
  return crypto.getRandomValues(new Uint8Array(bytes)).toHex()
}
