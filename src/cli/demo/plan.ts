import type { JsonObject } from '../../client/json.ts'
import type { Level } from '../../client/run.ts'
import type { Random } from './random.ts'

/** A kind of program that reports its runs. */
export interface Profile {
  /** The agent's name. */
  readonly name: string
  readonly description: string
  /** How its runs are reported: by our client, by OpenTelemetry, or with plain calls. */
  readonly sender: 'client' | 'otlp' | 'http'
  /** Weight among the agents whose episodes start by themselves; 0 for agents that only work for others. */
  readonly share: number
  /** Metadata of each version of the agent, oldest first. */
  readonly versions: readonly JsonObject[]
  /** Runs that follow each other, such as the turns of a conversation. */
  episode(random: Random): readonly RunPlan[]
}

/** One run, planned before it starts. */
export interface RunPlan {
  readonly input: JsonObject
  readonly triggerType: 'manual' | 'scheduled' | 'webhook' | 'sdk'
  readonly externalRunId?: string | undefined
  readonly sessionId?: string | undefined
  readonly externalUserId?: string | undefined
  readonly tags: readonly string[]
  readonly metadata: JsonObject
  readonly steps: readonly Step[]
  readonly outcome: Outcome
}

export type Outcome =
  | { readonly status: 'completed'; readonly output: JsonObject }
  | { readonly status: 'failed'; readonly message: string; readonly detail: JsonObject }
  | { readonly status: 'cancelled'; readonly reason: string }

export type Step = PlannedTask | PlannedEvent | Branches | Delegation

export interface PlannedTask {
  readonly kind: 'task'
  readonly name: string
  readonly input?: JsonObject | undefined
  readonly output?: JsonObject | undefined
  readonly steps: readonly Step[]
  /** The task fails with this message after its steps. */
  readonly error?: string | undefined
  readonly isSkipped?: boolean | undefined
}

export interface PlannedEvent {
  readonly kind: 'event'
  readonly type: string
  readonly level: Level
  readonly payload: JsonObject
  /** Duration of the reported work, in milliseconds. */
  readonly ms: number
}

/** Steps that are taken at the same time. */
interface Branches {
  readonly kind: 'branches'
  readonly branches: readonly (readonly Step[])[]
}

/** A part of the work that another agent does, as a child run. */
interface Delegation {
  readonly kind: 'child'
  readonly to: string
  readonly plan: RunPlan
}

/** What happens in a run at a moment, in milliseconds after its start. */
export type Moment = { readonly at: number } & (
  | { readonly kind: 'task'; readonly task: PlannedTask; readonly parent: PlannedTask | undefined }
  | { readonly kind: 'task end'; readonly task: PlannedTask }
  | { readonly kind: 'event'; readonly event: PlannedEvent; readonly task: PlannedTask | undefined }
  | { readonly kind: 'child'; readonly to: string; readonly plan: RunPlan }
)

interface Timeline {
  readonly moments: readonly Moment[]
  /** When the run ends, in milliseconds after its start. */
  readonly endsAt: number
}

/** Between one step and the next. */
const STEP_GAP_MS = 12

/** The moments of a run in order. */
export function timelineOf(plan: RunPlan): Timeline {
  const moments: Moment[] = []
  const endsAt = place(plan.steps, 0, undefined, moments) + STEP_GAP_MS
  return { moments: moments.toSorted((a, b) => a.at - b.at), endsAt }
}

/** Adds the moments of steps that begin at `at`. @returns when the last one ends */
function place(steps: readonly Step[], at: number, parent: PlannedTask | undefined, moments: Moment[]): number {
  let now = at
  for (const step of steps) now = placeStep(step, now + STEP_GAP_MS, parent, moments)
  return now
}

function placeStep(step: Step, at: number, parent: PlannedTask | undefined, moments: Moment[]): number {
  switch (step.kind) {
    case 'event':
      moments.push({ kind: 'event', at: at + step.ms, event: step, task: parent })
      return at + step.ms
    case 'child':
      moments.push({ kind: 'child', at, to: step.to, plan: step.plan })
      return at + timelineOf(step.plan).endsAt
    case 'branches':
      return Math.max(at, ...step.branches.map((steps, index) => place(steps, at + index, parent, moments)))
    case 'task': {
      moments.push({ kind: 'task', at, task: step, parent })
      const end = place(step.steps, at, step, moments) + 1
      moments.push({ kind: 'task end', at: end, task: step })
      return end
    }
  }
}

export function task(
  name: string,
  steps: readonly Step[],
  more: Omit<PlannedTask, 'kind' | 'name' | 'steps'> = {},
): PlannedTask {
  return { kind: 'task', name, steps, ...more }
}

/** An event of an agent's own. */
export function note(level: Level, type: string, payload: JsonObject, ms = 0): PlannedEvent {
  return { kind: 'event', level, type, payload, ms }
}
