import type { Event, RunSummary, Task } from '../data/records.ts'
import { type CallUsage, childRunOf, fieldOf, latencyOf, modelOf, toolOf, usageOf } from './payload.ts'

export type SpanKind = 'run' | 'child' | 'task' | 'model' | 'tool' | 'wait'

/** A bar of the waterfall. */
export interface Span {
  readonly id: string
  readonly parentId: string | null
  readonly kind: SpanKind
  readonly name: string
  readonly startMs: number
  /** Null while it is under way. */
  readonly endMs: number | null
  readonly status: string
  /** Of a call of a model. */
  readonly usage?: CallUsage
  /** The events that it was made from. */
  readonly events: readonly Event[]
  readonly task?: Task
  readonly run?: RunSummary
}

export interface SpanSources {
  readonly run: RunSummary
  readonly tasks: readonly Task[]
  readonly children: readonly RunSummary[]
  /** Those of model calls, tool calls, approvals and questions, with their payloads, in order. */
  readonly events: readonly Event[]
}

/** Everything that took time in a run. A span that has not begun, or was skipped, is none. */
export function spansOf({ run, tasks, children, events }: SpanSources): Span[] {
  const taskIds = new Set(tasks.map(({ id }) => id))
  // An OpenTelemetry span is a task and an event of the same id, which are one span here.
  const ofTasks = new Map(events.filter(({ id }) => taskIds.has(id)).map((event) => [event.id, event]))
  const others = events.filter(({ id }) => !taskIds.has(id))
  const tools = toolSpans(others, run)
  const byChild = new Map(tools.flatMap(({ id, events: own }) => own.map((event) => [childRunOf(event.payload), id])))
  return [
    ...tasks.flatMap((task) => taskSpan(task, ofTasks.get(task.id), run)),
    ...others.filter(({ type }) => type === 'llm.call').map(modelSpan),
    ...tools,
    ...waitSpans(others, run),
    ...children.map((child) => childSpan(child, byChild.get(child.run_id) ?? null)),
  ]
}

function taskSpan(task: Task, event: Event | undefined, run: RunSummary): Span[] {
  if (task.started_at === null || task.status === 'pending' || task.status === 'skipped') return []
  const kind = event?.type === 'llm.call' ? 'model' : event?.type === 'tool.call.finished' ? 'tool' : 'task'
  return [
    {
      id: task.id,
      parentId: task.parent_task_id,
      kind,
      name: task.name,
      startMs: Date.parse(task.started_at),
      endMs: endOf(task.completed_at, run),
      status: task.status,
      events: event === undefined ? [] : [event],
      task,
      ...(kind === 'model' && event !== undefined && { usage: usageOf(event.payload) }),
    },
  ]
}

/** What never ended is shown up to the end of its run. */
function endOf(completedAt: string | null, run: RunSummary): number | null {
  const at = completedAt ?? run.completed_at
  return at === null ? null : Date.parse(at)
}

function modelSpan(event: Event): Span {
  const endMs = Date.parse(event.occurred_at)
  return {
    id: `event ${event.seq}`,
    parentId: null,
    kind: 'model',
    name: modelOf(event.payload) ?? 'model call',
    startMs: endMs - latencyOf(event.payload),
    endMs,
    status: event.level === 'error' ? 'failed' : 'completed',
    usage: usageOf(event.payload),
    events: [event],
  }
}

/** `tool.call.started` and `tool.call.finished` with the same call id are one span. */
function toolSpans(events: readonly Event[], run: RunSummary): Span[] {
  const spans: Span[] = []
  const open = new Map<string, number>()
  for (const event of events) {
    if (event.type !== 'tool.call.started' && event.type !== 'tool.call.finished') continue
    const { name, callId } = toolOf(event.payload)
    const at = Date.parse(event.occurred_at)
    const begun = callId === null ? undefined : open.get(callId)
    if (event.type === 'tool.call.started') {
      if (callId !== null) open.set(callId, spans.length)
      spans.push({ ...toolSpan(event, name), startMs: at, endMs: endOf(null, run), status: 'running' })
      continue
    }
    const status = failed(event) ? 'failed' : 'completed'
    const started = begun === undefined ? undefined : spans[begun]
    if (begun === undefined || started === undefined) {
      spans.push({ ...toolSpan(event, name), startMs: at - latencyOf(event.payload), endMs: at, status })
      continue
    }
    open.delete(callId as string)
    spans[begun] = { ...started, endMs: Math.max(at, started.startMs), status, events: [...started.events, event] }
  }
  return spans
}

function toolSpan(event: Event, name: string) {
  return { id: `event ${event.seq}`, parentId: null, kind: 'tool' as const, name, events: [event] }
}

function failed({ level, payload }: Event): boolean {
  return level === 'error' || fieldOf(payload, 'status') === 'failed' || fieldOf(payload, 'error.type') !== undefined
}

const WAITS = {
  approval: { requested: 'approval.requested', ended: 'approval.', id: 'approval_id' },
  input: { requested: 'input.requested', ended: 'input.', id: 'request_id' },
}

/** From a request to what answered it. */
function waitSpans(events: readonly Event[], run: RunSummary): Span[] {
  return Object.values(WAITS).flatMap(({ requested, ended, id }) => {
    const ends = new Map(
      events
        .filter(({ type }) => type.startsWith(ended) && type !== requested)
        .map((event) => [String(fieldOf(event.payload, id)), event]),
    )
    return events
      .filter(({ type }) => type === requested)
      .map((event): Span => {
        const end = ends.get(String(fieldOf(event.payload, id)))
        const tool = fieldOf(event.payload, 'tool')
        return {
          id: `event ${event.seq}`,
          parentId: null,
          kind: 'wait',
          name: tool === undefined ? 'question' : `approval: ${String(tool)}`,
          startMs: Date.parse(event.occurred_at),
          endMs: endOf(end?.occurred_at ?? null, run),
          status:
            end === undefined && run.completed_at === null
              ? 'awaiting_input'
              : String(fieldOf(end?.payload, 'status') ?? 'answered'),
          events: end === undefined ? [event] : [event, end],
        }
      })
  })
}

function childSpan(child: RunSummary, parentId: string | null): Span {
  return {
    id: child.run_id,
    parentId,
    kind: 'child',
    name: `run …${child.run_id.slice(-8)}`,
    startMs: Date.parse(child.started_at ?? child.created_at),
    endMs: child.completed_at === null ? null : Date.parse(child.completed_at),
    status: child.status,
    events: [],
    run: child,
    usage: {
      model: null,
      inputTokens: child.usage.input_tokens,
      outputTokens: child.usage.output_tokens,
      costUsd: child.cost_usd,
    },
  }
}

/** Types of the events that {@link spansOf} needs. */
export const SPAN_EVENT_TYPES = ['llm.call', 'tool.call.*', 'approval.*', 'input.*'] as const

export function isSpanEvent({ type }: Pick<Event, 'type'>): boolean {
  return type === 'llm.call' || /^(tool\.call|approval|input)\./.test(type)
}
