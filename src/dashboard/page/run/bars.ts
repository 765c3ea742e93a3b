import {
  type CallUsage,
  childRunOf,
  fieldOf,
  latencyOf,
  modelOf,
  toolCallIdOf,
  toolNameOf,
  usageOf,
} from '../../../base/conventions/payload.ts'
import { count, counted, dollars } from '../../../base/format.ts'
import type { Event, RunSummary, Task } from '../data/records.ts'

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

/** A bar in the tree of steps. */
export type TreeBar = Bar & { readonly depth: number }

interface BarSources {
  readonly run: RunSummary
  readonly tasks: readonly Task[]
  readonly children: readonly RunSummary[]
  /** Its events in order, with payloads: model calls and their messages, tool calls, approvals and questions. */
  readonly events: readonly Event[]
}

/** Everything that took time in a run. Omits tasks that have not begun or were skipped. */
export function barsOf({ run, tasks, children, events }: BarSources): Bar[] {
  const taskIds = new Set(tasks.map(({ id }) => id))
  // An OpenTelemetry span is a task and an event of the same id, which are one bar here.
  const ofTasks = new Map(events.filter(({ id }) => taskIds.has(id)).map((event) => [event.id, event]))
  const others = events.filter(({ id }) => !taskIds.has(id))
  const said = Map.groupBy(others.filter(isMessageEvent), ({ task_id }) => task_id)
  const tools = toolBars(others, run)
  const byChild = new Map(tools.flatMap(({ id, events: own }) => own.map((event) => [childRunOf(event.payload), id])))
  return [
    ...tasks.flatMap((task) => taskBar(task, ofTasks.get(task.id), said.get(task.id) ?? [], run)),
    ...others.filter(({ type }) => type === 'llm.call').map(modelBar),
    ...tools,
    ...waitBars(others, run),
    ...children.map((child) => childBar(child, byChild.get(child.run_id) ?? null)),
  ]
}

/** @param said messages that OpenTelemetry reports as events of the span */
function taskBar(task: Task, event: Event | undefined, said: readonly Event[], run: RunSummary): Bar[] {
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
      events: event === undefined ? said : [...said, event],
      task,
      ...(kind === 'model' && event !== undefined && { usage: modelBar(event).usage as CallUsage }),
    },
  ]
}

/** What never ended is shown up to the end of its run. */
function endOf(completedAt: string | null, run: RunSummary): number | null {
  const at = completedAt ?? run.completed_at
  return at === null ? null : Date.parse(at)
}

/** Cached by event: each event of a live run makes all bars anew, but the event of a call does not change. */
const modelBars = new WeakMap<Event, Bar>()

function modelBar(event: Event): Bar {
  const known = modelBars.get(event)
  if (known !== undefined) return known
  const endMs = Date.parse(event.occurred_at)
  const bar: Bar = {
    id: event.id,
    parentId: event.task_id ?? null,
    kind: 'model',
    name: modelOf(event.payload) ?? 'model call',
    startMs: endMs - latencyOf(event.payload),
    endMs,
    status: event.level === 'error' ? 'failed' : 'completed',
    usage: usageOf(event.payload),
    events: [event],
  }
  modelBars.set(event, bar)
  return bar
}

/** An event that begins something, and the one that ends it. */
type Pair = { readonly begun: Event; readonly ended?: Event } | { readonly begun?: undefined; readonly ended: Event }

/** Pairs the events of two types that have the same id, which may be used again afterwards. */
function pairsOf(events: readonly Event[], begins: string, ends: string, idOf: (payload: unknown) => string | null) {
  const pairs: Pair[] = []
  const open = new Map<string, { readonly at: number; readonly begun: Event }>()
  for (const event of events) {
    const id = event.type === begins || event.type === ends ? idOf(event.payload) : null
    if (event.type === begins) {
      if (id !== null) open.set(id, { at: pairs.length, begun: event })
      pairs.push({ begun: event })
    } else if (event.type === ends) {
      const pair = id === null ? undefined : open.get(id)
      if (pair === undefined) pairs.push({ ended: event })
      else pairs[pair.at] = { begun: pair.begun, ended: event }
      open.delete(id ?? '')
    }
  }
  return pairs
}

/** The parts of a bar that come from a pair of events; one that never ended is shown up to the end of its run. */
function pairBar({ begun, ended }: Pair, run: RunSummary) {
  const events = [begun, ended].filter((event) => event !== undefined)
  const first = begun ?? ended
  const startMs = Date.parse(first.occurred_at) - (begun === undefined ? latencyOf(first.payload) : 0)
  const endMs = endOf(ended?.occurred_at ?? null, run)
  return {
    id: first.id,
    parentId: first.task_id ?? null,
    startMs,
    endMs: endMs === null ? null : Math.max(startMs, endMs),
    events,
  }
}

/** `tool.call.started` and `tool.call.finished` with the same call id are one bar. */
function toolBars(events: readonly Event[], run: RunSummary): Bar[] {
  const pairs = pairsOf(events, 'tool.call.started', 'tool.call.finished', toolCallIdOf)
  return pairs.map((pair) => {
    const name = toolNameOf((pair.begun ?? pair.ended).payload) ?? 'tool'
    return { ...pairBar(pair, run), kind: 'tool', name, status: statusOfCall(pair.ended) }
  })
}

/** A call that a person rejected was never made, so it has not failed. */
function statusOfCall(ended: Event | undefined): string {
  if (ended === undefined) return 'running'
  const { level, payload } = ended
  const status = fieldOf(payload, 'status')
  if (status === 'rejected') return status
  return level === 'error' || status === 'failed' || fieldOf(payload, 'error.type') !== undefined
    ? 'failed'
    : 'completed'
}

/** From a request to the event that answers it. */
function waitBars(events: readonly Event[], run: RunSummary): Bar[] {
  const byId = (name: string) => (payload: unknown) => String(fieldOf(payload, name))
  const pairs = [
    ...pairsOf(events, 'approval.requested', 'approval.decided', byId('approval_id')),
    ...pairsOf(events, 'input.requested', 'input.answered', byId('request_id')),
  ]
  return pairs.flatMap((pair): Bar[] => {
    if (pair.begun === undefined) return []
    const tool = fieldOf(pair.begun.payload, 'tool')
    const isOpen = pair.ended === undefined && run.completed_at === null
    return [
      {
        ...pairBar(pair, run),
        kind: 'wait',
        name: tool === undefined ? 'question' : `approval: ${String(tool)}`,
        status: isOpen ? 'awaiting_input' : String(fieldOf(pair.ended?.payload, 'status') ?? 'answered'),
      },
    ]
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
      cacheReadTokens: child.usage.cache_read_tokens,
      reasoningTokens: child.usage.reasoning_tokens,
      costUsd: child.cost_usd,
    },
  }
}

/** Types of the events that {@link barsOf} needs. */
export const BAR_EVENT_TYPES = ['llm.call', 'tool.call.*', 'approval.*', 'input.*', 'gen_ai.*'] as const

export function isBarEvent({ type }: Pick<Event, 'type'>): boolean {
  return type === 'llm.call' || /^(tool\.call|approval|input|gen_ai)\./.test(type)
}

/** OpenTelemetry may report the messages of a model call as events of their own. */
function isMessageEvent({ type }: Pick<Event, 'type'>): boolean {
  return type.startsWith('gen_ai.')
}

/** Whether there are model calls, and none of them reports tokens or a cost: what they cost is unknown, not nothing. */
export function areUncounted(bars: readonly Pick<Bar, 'kind' | 'usage'>[]): boolean {
  const models = bars.filter(({ kind }) => kind === 'model')
  const isUncounted = ({ usage }: Pick<Bar, 'usage'>) =>
    usage === undefined || usage.inputTokens + usage.outputTokens + usage.costUsd === 0
  return models.length > 0 && models.every(isUncounted)
}

/** Types of the events that end a call. */
const CALLS = { model: 'llm.call', tool: 'tool.call.finished' } as const

/** How many calls a run has made, also if not all of them are drawn, and what they cost. @param events all of the run */
export function timelineSummary(
  bars: readonly Pick<Bar, 'kind' | 'usage'>[],
  events: readonly { readonly type: string }[],
  run: { readonly cost_usd: number },
): string {
  const calls = (kind: keyof typeof CALLS) => {
    const drawn = bars.filter((bar) => bar.kind === kind).length
    const all = Math.max(drawn, events.filter(({ type }) => type === CALLS[kind]).length)
    return {
      drawn,
      all,
      text: drawn < all ? `${count(drawn)} of ${counted(all, `${kind} call`)} shown` : counted(all, `${kind} call`),
    }
  }
  const [models, tools] = [calls('model'), calls('tool')]
  const drawnCost = bars.reduce((sum, { kind, usage }) => sum + (kind === 'model' ? (usage?.costUsd ?? 0) : 0), 0)
  const cost = models.drawn < models.all ? run.cost_usd : drawnCost
  const known = cost > 0 ? dollars(cost) : areUncounted(bars) && 'cost unknown'
  const parts = [models.all > 0 && models.text, tools.all > 0 && tools.text, known]
  return parts.filter((part) => part !== false).join(' · ')
}
