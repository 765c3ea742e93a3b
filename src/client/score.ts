import type { JsonObject } from './json.ts'
import type { Reporter } from './reporter.ts'

/** What a score says beside its value, and what it is about. */
export interface ScoreOptions {
  /** A later score of the run with the same id replaces this one. Default: a new one. */
  readonly id?: string | undefined
  /** One of several classes, such as `billing`. */
  readonly label?: string | undefined
  /** A finding in words. */
  readonly text?: string | undefined
  /** Why, or anything else about the score. */
  readonly comment?: string | undefined
  /** Who scores. Default: `api`. */
  readonly source?: 'api' | 'person' | 'judge' | 'import' | undefined
  readonly metadata?: JsonObject | undefined
  /** When it was given. Default: now. */
  readonly createdAt?: Date | undefined
  /** The task that is scored. Default: the whole run. At most one of task, event and session. */
  readonly taskId?: string | undefined
  /** The event that is scored. */
  readonly eventId?: string | undefined
  /** The conversation that is scored. */
  readonly sessionId?: string | undefined
}

/** A number, `true` or `false`, or the label of a class. */
export type ScoreValue = number | boolean | string

/** The value of a score and what else it says; without a value, only that. */
export type ScoreArguments = [value: ScoreValue, options?: ScoreOptions] | [options: ScoreOptions]

interface ScoreReporting {
  readonly reporter: Reporter
  readonly newEventId: () => string
  readonly now: () => string
}

/** Reports a score of any run. @returns a promise that resolves when there is room for more */
export function reportScore(
  { reporter, newEventId, now }: ScoreReporting,
  runId: string,
  name: string,
  [value, options]: ScoreArguments,
): Promise<void> {
  try {
    const hasValue = typeof value !== 'object'
    const { id = newEventId(), createdAt, ...given } = (hasValue ? options : value) ?? {}
    const at = createdAt === undefined ? now() : createdAt.toISOString()
    const text = scoreText({ id, runId, name, at }, hasValue ? value : undefined, given)
    return reporter.add({ kind: 'score', runId, text })
  } catch (error) {
    return reporter.reject(error, runId)
  }
}

interface ScoreHead {
  readonly id: string
  readonly runId: string
  readonly name: string
  readonly at: string
}

type ScoreRest = Omit<ScoreOptions, 'id' | 'createdAt'>

/**
 * The JSON of a score.
 *
 * @throws Error for a number that JSON cannot express, or two different labels; TypeError for such metadata
 */
function scoreText({ id, runId, name, at }: ScoreHead, value: ScoreValue | undefined, rest: ScoreRest): string {
  const { label, text, comment, source, metadata, taskId, eventId, sessionId } = rest
  if (typeof value === 'number' && !Number.isFinite(value)) throw new Error(`a score cannot be ${value}`)
  const isLabel = typeof value === 'string'
  if (isLabel && label !== undefined && label !== value) throw new Error('a score has one label; got two')
  return JSON.stringify({
    id,
    run_id: runId,
    task_id: taskId,
    event_id: eventId,
    session_id: sessionId,
    name,
    created_at: at,
    ...(isLabel ? { label: value } : { value, label }),
    text,
    comment,
    source,
    metadata,
  })
}
