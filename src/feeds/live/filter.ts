import { RUN_STATUSES } from '../../activity/runs/state.ts'
import { TASK_STATUSES } from '../../activity/tasks/state.ts'
import { ApiError, invalid } from '../../base/errors.ts'
import { separated } from '../../base/http/schema.ts'
import { isUuid } from '../../base/ids.ts'
import { ACTIVITY_KINDS, type ActivityKind } from '../../stores/journal/kinds.ts'
import { LEVELS } from '../../stores/journal/levels.ts'
import type { RunSession } from './run-sessions.ts'

/**
 * Selects activity of a workspace. Absent members match everything. A condition concerns the kinds that have its field;
 * {@link parseFilter} excludes the others.
 */
export interface Filter {
  readonly agentIds?: ReadonlySet<string> | undefined
  readonly runIds?: ReadonlySet<string> | undefined
  /** The kinds that can match: the requested ones that have every field with a condition. */
  readonly kinds: ReadonlySet<ActivityKind>
  /** Events, scores and tasks only. */
  readonly taskIds?: ReadonlySet<string> | undefined
  /** Of the run that the activity is of, as is the next. */
  readonly sessionIds?: ReadonlySet<string> | undefined
  readonly externalUserIds?: ReadonlySet<string> | undefined
  /** Events only. Complete types, and prefixes with a trailing `*`. */
  readonly types?: readonly string[] | undefined
  /** Events only: the minimum level, as its index in `LEVELS` from 1. */
  readonly level?: number | undefined
  /** Runs and tasks only. */
  readonly statuses?: ReadonlySet<string> | undefined
  /** Runs only: one of these must be among the run's. */
  readonly tags?: ReadonlySet<string> | undefined
  /**
   * Also selects workspace events (those of no run, such as transitions of alerts), whatever the other conditions. Without it
   * they never match. Callers cannot set it, see {@link withWorkspaceEvents}.
   */
  readonly workspaceEvents?: true
  /** Equal for equivalent filters. */
  readonly key: string
}

/** The caller's access: limited to one agent by an agent key, to one run by a feed token. */
export interface Scope {
  readonly agentId: string | null
  readonly runId: string | null
}

/** The fields of a filter before validation, from a query string or a JSON message. */
export type FilterInput = Readonly<Record<string, unknown>>

export const FILTER_FIELDS = [
  'agent_id',
  'run_id',
  'task_id',
  'session_id',
  'external_user_id',
  'kind',
  'type',
  'level',
  'status',
  'tag',
] as const

type Field = (typeof FILTER_FIELDS)[number]

const STATUSES: readonly string[] = [...new Set<string>([...TASK_STATUSES, ...RUN_STATUSES])]
const COMMON_FIELDS: readonly Field[] = ['agent_id', 'run_id', 'session_id', 'external_user_id', 'kind']
/** The other fields of each kind. */
const FIELDS_OF: Readonly<Record<ActivityKind, readonly Field[]>> = {
  event: ['task_id', 'type', 'level'],
  task: ['task_id', 'status'],
  run: ['status', 'tag'],
  score: ['task_id'],
}
const VALUES_MAX = 100
const TYPE_LENGTH_MAX = 10_000
const TAG_LENGTH_MAX = 2_000
const EXTERNAL_ID_LENGTH_MAX = 255

/**
 * Parses a filter. A field is one value or a list, of which any may match; fields are combined with AND. A condition on a
 * field that a kind of activity does not have excludes that kind.
 *
 * @param path of the fields in the request, for error messages: `filter`, `query`
 * @throws ApiError VALIDATION_ERROR that names the field; FORBIDDEN for an agent or run outside `scope`
 */
export function parseFilter(input: FilterInput, path: string, scope: Scope): Filter {
  for (const name of Object.keys(input))
    if (!FILTER_FIELDS.includes(name as Field))
      throw invalid(`${path}.${name}`, `unknown field; expected one of ${FILTER_FIELDS.join(', ')}`)
  const read = (field: Field, check: Check) => values(input[field], `${path}.${field}`, check)
  const levels = read('level', oneOf(LEVELS))
  const statuses = values(statusList(input.status), `${path}.status`, oneOf(STATUSES))
  const tags = read('tag', text(TAG_LENGTH_MAX))
  const types = read('type', eventType)
  const tasks = read('task_id', uuid)
  const conditions = { task_id: tasks, type: types, level: levels, status: statuses, tag: tags }
  const filter = {
    agentIds: setOf(scoped(read('agent_id', uuid), scope.agentId, 'agent')),
    runIds: setOf(scoped(read('run_id', uuid), scope.runId, 'run')),
    taskIds: setOf(tasks),
    sessionIds: setOf(read('session_id', text(EXTERNAL_ID_LENGTH_MAX))),
    externalUserIds: setOf(read('external_user_id', text(EXTERNAL_ID_LENGTH_MAX))),
    kinds: new Set(kindsOf(read('kind', oneOf(ACTIVITY_KINDS)) as ActivityKind[] | undefined, conditions, path)),
    types,
    level: levels && Math.min(...levels.map((level) => LEVELS.indexOf(level as (typeof LEVELS)[number]) + 1)),
    statuses: setOf(statuses),
    tags: setOf(tags),
  }
  return { ...filter, key: JSON.stringify(filter, (_name, value) => (value instanceof Set ? [...value] : value)) }
}

/** The filter, which also selects workspace events. */
export function withWorkspaceEvents(filter: Filter): Filter {
  return { ...filter, workspaceEvents: true, key: `${filter.key} and workspace events` }
}

/** The kinds of activity that have a field. */
export function kindsWith(field: Field): readonly ActivityKind[] {
  return COMMON_FIELDS.includes(field)
    ? ACTIVITY_KINDS
    : ACTIVITY_KINDS.filter((kind) => FIELDS_OF[kind].includes(field))
}

/** Whether a filter has a condition on the session or the external user of a run. */
export function isBySession({ sessionIds, externalUserIds }: Filter): boolean {
  return sessionIds !== undefined || externalUserIds !== undefined
}

/** Whether a run's session and external user match the conditions on them. */
export function matchesSession({ sessionIds, externalUserIds }: Filter, run: RunSession): boolean {
  return (
    (sessionIds === undefined || sessionIds.has(run.session_id ?? '')) &&
    (externalUserIds === undefined || externalUserIds.has(run.external_user_id ?? ''))
  )
}

/** Whether an event's type matches one of the filter's types. */
export function matchesType(types: readonly string[], type: string): boolean {
  return types.some((each) => (each.endsWith('*') ? type.startsWith(each.slice(0, -1)) : each === type))
}

/** Statuses can be separated by commas, as in the list of runs. */
function statusList(input: unknown): unknown {
  const isList = Array.isArray(input) || (typeof input === 'string' && input.includes(','))
  return isList ? separated(input) : input
}

type Check = (value: string, path: string) => string

/** Returns the values sorted and without duplicates, so that equivalent filters have equal keys. */
function values(input: unknown, path: string, check: Check): string[] | undefined {
  if (input === undefined || input === null) return undefined
  const list = Array.isArray(input) ? input : [input]
  if (list.length === 0) throw invalid(path, 'expected at least one value; omit the field to match everything')
  if (list.length > VALUES_MAX) throw invalid(path, `expected at most ${VALUES_MAX} values`)
  const checked = list.map((value, index) => {
    const at = Array.isArray(input) ? `${path}[${index}]` : path
    if (typeof value !== 'string') throw invalid(at, 'expected text')
    return check(value, at)
  })
  return [...new Set(checked)].sort()
}

function oneOf(words: readonly string[]): Check {
  return (value, path) => {
    if (words.includes(value)) return value
    throw invalid(path, `expected one of ${words.join(', ')}; got ${JSON.stringify(value.slice(0, 100))}`)
  }
}

function uuid(value: string, path: string): string {
  if (isUuid(value)) return value.toLowerCase()
  throw invalid(path, 'expected a uuid')
}

function text(lengthMax: number): Check {
  return (value, path) => {
    if (value.length > 0 && value.length <= lengthMax) return value
    throw invalid(path, `expected 1 to ${lengthMax} characters`)
  }
}

function eventType(value: string, path: string): string {
  const star = value.indexOf('*')
  if (star >= 0 && star !== value.length - 1) throw invalid(path, 'a * is allowed only at the end')
  return text(TYPE_LENGTH_MAX)(value, path)
}

function kindsOf(
  asked: readonly ActivityKind[] | undefined,
  conditions: Partial<Record<Field, readonly string[] | undefined>>,
  path: string,
): ActivityKind[] {
  // In a fixed order, so that equivalent filters have equal keys.
  let kinds = ACTIVITY_KINDS.filter((kind) => asked?.includes(kind) ?? true)
  const used = (Object.keys(conditions) as Field[]).filter((field) => conditions[field] !== undefined)
  for (const field of used) kinds = kinds.filter((kind) => kindsWith(field).includes(kind))
  if (kinds.length > 0) return kinds
  const names = [...(asked === undefined ? [] : ['kind']), ...used]
  throw invalid(path, `nothing can match: no kind of activity satisfies ${names.join(' and ')} together`)
}

function scoped(asked: string[] | undefined, allowed: string | null, what: string): string[] | undefined {
  if (allowed === null) return asked
  if (asked?.some((id) => id !== allowed))
    throw new ApiError(
      'FORBIDDEN',
      `this key or token gives access to one ${what} only, which is not the requested one`,
      { reason: what === 'agent' ? 'wrong_agent' : 'feed_token' },
    )
  return [allowed]
}

function setOf(values: readonly string[] | undefined): ReadonlySet<string> | undefined {
  return values && new Set(values)
}
