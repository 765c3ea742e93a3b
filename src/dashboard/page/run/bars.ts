import type { Event, RunSummary, Task } from '../data/records.ts'
import { type CallUsage, childRunOf, fieldOf, latencyOf, modelOf, toolOf, usageOf } from './payload.ts'

export type BarKind = 'run' | 'child' | 'task' | 'model' | 'tool' | 'wait'

/** A bar of the waterfall. */
export interface Bar {
  readonly id: string
  readonly parentId: string | null
  readonly kind: BarKind
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

interface BarSources {
  readonly run: RunSummary
  readonly tasks: readonly Task[]
  readonly children: readonly RunSummary[]
  /** Those of model calls, tool calls, approvals and questions, with their payloads, in order. */
  readonly events: readonly Event[]
}

/** Everything that took time in a run. Omits tasks that have not begun or were skipped. */
export function barsOf({ run, tasks, children, events }: BarSources): Bar[] {
  const taskIds = new Set(tasks.map(({ id }) => id))
  // An OpenTelemetry span is a task and an event of the same id, which are one bar here.
  const ofTasks = new Map(events.filter(({ id }) => taskIds.has(id)).map((event) => [event.id, event]))
  const others = events.filter(({ id }) => !taskIds.has(id))
  const tools = toolBars(others, run)
  const byChild = new Map(tools.flatMap(({ id, events: own }) => own.map((event) => [childRunOf(event.payload), id])))
  return [
    ...tasks.flatMap((task) => taskBar(task, ofTasks.get(task.id), run)),
    ...others.filter(({ type }) => type === 'llm.call').map(modelBar),
    ...tools,
    ...waitBars(others, run),
    ...children.map((child) => childBar(child, byChild.get(child.run_id) ?? null)),
  ]
}

function taskBar(task: Task, event: Event | undefined, run: RunSummary): Bar[] {
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

function modelBar(event: Event): Bar {
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

/** `tool.call.started` and `tool.call.finished` with the same call id are one bar. */
function toolBars(events: readonly Event[], run: RunSummary): Bar[] {
  const bars: Bar[] = []
  const open = new Map<string, number>()
  for (const event of events) {
    if (event.type !== 'tool.call.started' && event.type !== 'tool.call.finished') continue
    const { name, callId } = toolOf(event.payload)
    const at = Date.parse(event.occurred_at)
    const begun = callId === null ? undefined : open.get(callId)
    if (event.type === 'tool.call.started') {
      if (callId !== null) open.set(callId, bars.length)
      bars.push({ ...toolBar(event, name), startMs: at, endMs: endOf(null, run), status: 'running' })
      continue
    }
    const status = failed(event) ? 'failed' : 'completed'
    const started = begun === undefined ? undefined : bars[begun]
    if (begun === undefined || started === undefined) {
      bars.push({ ...toolBar(event, name), startMs: at - latencyOf(event.payload), endMs: at, status })
      continue
    }
    open.delete(callId as string)
    bars[begun] = { ...started, endMs: Math.max(at, started.startMs), status, events: [...started.events, event] }
  }
  return bars
}

function toolBar(event: Event, name: string) {
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
function waitBars(events: readonly Event[], run: RunSummary): Bar[] {
  return Object.values(WAITS).flatMap(({ requested, ended, id }) => {
    const ends = new Map(
      events
        .filter(({ type }) => type.startsWith(ended) && type !== requested)
        .map((event) => [String(fieldOf(event.payload, id)), event]),
    )
    return events
      .filter(({ type }) => type === requested)
      .map((event): Bar => {
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

function childBar(child: RunSummary, parentId: string | null): Bar {
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

/** Types of the events that {@link barsOf} needs. */
export const BAR_EVENT_TYPES = ['llm.call', 'tool.call.*', 'approval.*', 'input.*'] as const

export function isBarEvent({ type }: Pick<Event, 'type'>): boolean {
  return type === 'llm.call' || /^(tool\.call|approval|input)\./.test(type)
}
