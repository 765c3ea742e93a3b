import { parsedJson } from '../../base/json-object.ts'
import { members } from '../../base/json-parts.ts'
import type { Activity } from '../live/activity.ts'

/** What an activity says before its record. */
interface Head {
  readonly cursor: string
  readonly agent_id: string | null
  readonly run_id: string | null
  readonly received_at: string
}

/** An activity as messages show it. */
export interface Subject {
  readonly type: string
  readonly kind: Activity['kind']
  readonly seq: number
  readonly head: Head
  /** The members of its record, as JSON; null: left out. */
  readonly record: Map<string, string>
  /** Whether members have been left out. */
  isTruncated: boolean
}

/** Types of events are longer only where the operator has raised the limit. */
const TYPE_LENGTH_MAX = 500
/** Types of events that would be mistaken for changes of runs and tasks, for scores, or for messages of the service. */
const AMBIGUOUS = /^(?:run|task|score|alert|webhook)\./

/** What precedes the record of an activity. */
export function headOf({ kind, text }: Activity): Head {
  // Nothing that callers choose precedes the record.
  return JSON.parse(`${text.slice(0, text.indexOf(recordName(kind)))}}`)
}

/** The text between the head of an activity and its record. */
export function recordName(kind: Activity['kind']): string {
  return `,"${kind}":`
}

export function subjectOf(activity: Activity): Subject {
  const { kind, seq, text } = activity
  const head = headOf(activity)
  const name = recordName(kind)
  const record = new Map(members(text.slice(text.indexOf(name) + name.length, -1)))
  return { type: typeOf(kind, head, record), kind, seq, head, record, isTruncated: false }
}

function typeOf(kind: Activity['kind'], { run_id }: Head, record: ReadonlyMap<string, string>): string {
  switch (kind) {
    case 'score':
      return 'score.added'
    case 'run':
    case 'task':
      return `${kind}.${textMember(record, 'status')}`
    case 'event': {
      const type = textMember(record, 'type').slice(0, TYPE_LENGTH_MAX).toWellFormed()
      return run_id !== null && AMBIGUOUS.test(type) ? `event.${type}` : type
    }
  }
}

/** A member that is text; empty if it is not. */
export function textMember(members: ReadonlyMap<string, string>, name: string): string {
  const value = parsedJson(members.get(name) ?? '')
  return typeof value === 'string' ? value : ''
}
