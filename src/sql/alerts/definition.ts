import { formatDuration, parseDuration } from '../../base/duration.ts'
import { invalid } from '../../base/errors.ts'
import { RawJson } from '../../base/raw-json.ts'
import type { RunQuery } from '../analytics/schema.ts'
import type { Evaluated } from './evaluation.ts'
import type { Rule } from './machine.ts'
import type { Alert, Comparison, CreateAlert, EditAlert } from './schema.ts'

/** Characters of the values of placeholders, as JSON. */
const PARAMS_LENGTH_MAX = 100_000
/** The placeholders that `window` gives values. */
const WINDOW_PARAMS = ['from', 'to']

/** The settings of an alert, as columns of `alerts`. */
export interface Settings {
  readonly name: string
  readonly query_id: string | null
  readonly query: string | null
  readonly params: RawJson
  readonly every_seconds: number
  readonly window_seconds: number | null
  readonly by_columns: readonly string[]
  /** Null: any row. */
  readonly condition: RawJson | null
  readonly for_seconds: number
  readonly keep_firing_seconds: number
  readonly no_data: Rule['noData']
  readonly on_error: Rule['onError']
  readonly renotify_seconds: number | null
  readonly notify: readonly string[]
  readonly is_enabled: boolean
}

/** An edit of one of these resets all states to ok. */
const EVALUATED_MEMBERS = ['query_id', 'query', 'params', 'every', 'window', 'by', 'condition'] as const

const DEFAULTS: Omit<Settings, 'name' | 'every_seconds'> = {
  query_id: null,
  query: null,
  params: new RawJson('{}'),
  window_seconds: null,
  by_columns: [],
  condition: null,
  for_seconds: 0,
  keep_firing_seconds: 0,
  no_data: 'ok',
  on_error: 'last',
  renotify_seconds: null,
  notify: [],
  is_enabled: true,
}

/** @throws ApiError VALIDATION_ERROR for members that contradict each other */
export function newSettings(body: CreateAlert): Settings {
  if ((body.query === undefined) === (body.query_id === undefined))
    throw invalid('query', 'expected either query or query_id')
  return checked({ ...DEFAULTS, name: body.name, every_seconds: 0, ...columnsOf(body) })
}

/** The settings after an edit. @throws ApiError VALIDATION_ERROR */
export function editedSettings(settings: Settings, edit: EditAlert): Settings {
  if (edit.query !== undefined && edit.query_id !== undefined)
    throw invalid('query', 'expected either query or query_id')
  return checked({ ...settings, ...columnsOf(edit) })
}

/** Whether an edit changes what is evaluated. */
export function changesEvaluation(edit: EditAlert): boolean {
  return EVALUATED_MEMBERS.some((member) => edit[member] !== undefined)
}

/** The columns of the members that are given. */
function columnsOf(body: EditAlert): Partial<Settings> {
  const { query, query_id, by, params, condition, enabled, notify, every, window, renotify } = body
  const given: { -readonly [Name in keyof Settings]?: Settings[Name] | undefined } = {
    name: body.name,
    ...(query === undefined ? {} : { query, query_id: null }),
    ...(query_id === undefined ? {} : { query_id: query_id.toLowerCase(), query: null }),
    params: params && RawJson.of(params),
    every_seconds: every === undefined ? undefined : secondsOf(every),
    window_seconds: window == null ? window : secondsOf(window),
    by_columns: by,
    condition: condition === 'any_row' ? null : condition && RawJson.of(condition),
    for_seconds: body.for === undefined ? undefined : secondsOf(body.for),
    keep_firing_seconds: body.keep_firing_for === undefined ? undefined : secondsOf(body.keep_firing_for),
    no_data: body.no_data,
    on_error: body.on_error,
    renotify_seconds: renotify == null ? renotify : secondsOf(renotify),
    notify: notify && [...new Set(notify.map((id) => id.toLowerCase()))],
    is_enabled: enabled,
  }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
}

function secondsOf(duration: string | null): number {
  return duration === null ? 0 : (parseDuration(duration) ?? 0)
}

function checked(settings: Settings): Settings {
  const params = paramsOf(settings)
  if (settings.params.text.length > PARAMS_LENGTH_MAX)
    throw invalid('params', `expected values of at most ${PARAMS_LENGTH_MAX} characters of JSON together`)
  const taken = settings.window_seconds === null ? undefined : WINDOW_PARAMS.find((name) => Object.hasOwn(params, name))
  if (taken !== undefined) throw invalid(`params.${taken}`, 'window sets this placeholder; leave it out')
  const comparison = comparisonOf(settings)
  if (comparison?.recover_value === undefined) return settings
  const { op, value, recover_value: recover } = comparison
  if (op === '=' || op === '!=') throw invalid('condition.recover_value', `cannot be combined with ${op}`)
  if (op.startsWith('>') ? recover > value : recover < value)
    throw invalid('condition.recover_value', `expected at ${op.startsWith('>') ? 'most' : 'least'} the value ${value}`)
  return settings
}

function paramsOf({ params }: Settings): NonNullable<RunQuery['params']> {
  return params.parse() as NonNullable<RunQuery['params']>
}

function comparisonOf({ condition }: Settings): Comparison | null {
  return condition === null ? null : (condition.parse() as Comparison)
}

/** A query with the values of its placeholders. */
export interface QueryText {
  readonly query: string
  /** Default values of a saved query. */
  readonly params: RawJson | null
}

/** @param secondMs milliseconds of a second; tests take fewer */
export function evaluatedOf(settings: Settings, { query, params }: QueryText, secondMs: number): Evaluated {
  return {
    query,
    params: { ...(params?.parse() as RunQuery['params']), ...paramsOf(settings) },
    windowMs: settings.window_seconds && settings.window_seconds * secondMs,
    by: settings.by_columns,
    column: comparisonOf(settings)?.column ?? null,
  }
}

export function ruleOf(settings: Settings, secondMs: number): Rule {
  const comparison = comparisonOf(settings)
  return {
    by: settings.by_columns,
    comparison: comparison && {
      op: comparison.op,
      value: comparison.value,
      recoverValue: comparison.recover_value ?? null,
    },
    forMs: settings.for_seconds * secondMs,
    keepFiringMs: settings.keep_firing_seconds * secondMs,
    noData: settings.no_data,
    onError: settings.on_error,
    renotifyMs: settings.renotify_seconds && settings.renotify_seconds * secondMs,
  }
}

/** The settings as clients see them. */
export function shownSettings(settings: Settings) {
  const { name, query_id, query, params, no_data, on_error, notify, is_enabled: enabled } = settings
  const optional = (seconds: number | null) => (seconds === null || seconds === 0 ? null : formatDuration(seconds))
  return {
    name,
    query_id,
    query,
    params,
    every: formatDuration(settings.every_seconds),
    window: optional(settings.window_seconds),
    by: [...settings.by_columns],
    condition: settings.condition ?? new RawJson('"any_row"'),
    for: optional(settings.for_seconds),
    keep_firing_for: optional(settings.keep_firing_seconds),
    no_data,
    on_error,
    renotify: optional(settings.renotify_seconds),
    notify: [...notify],
    enabled,
  } satisfies Partial<Alert>
}
