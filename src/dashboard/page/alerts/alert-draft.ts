import { parseDuration } from '../../../base/duration.ts'
import type { AlertDefinition, Comparison } from '../data/alerts.ts'
import { textOf } from '../data/json.ts'
import type { TimeRange } from '../parts/range.tsx'
import { paramsOf, placeholdersOf, textsOf } from '../sql/placeholders.ts'
import { timeParams } from '../sql/time-params.ts'

/** An alert as the form edits it: texts, of which empty ones stand for nothing. */
export interface AlertDraft {
  readonly name: string
  /** The saved query; empty: the alert has its own. */
  readonly queryId: string
  readonly query: string
  readonly params: Readonly<Record<string, string>>
  readonly every: string
  readonly window: string
  /** Columns, separated by commas. */
  readonly by: string
  readonly isAnyRow: boolean
  readonly column: string
  readonly op: Comparison['op']
  readonly value: string
  readonly recover: string
  readonly for: string
  readonly keep: string
  readonly renotify: string
  readonly noData: NonNullable<AlertDefinition['no_data']>
  readonly onError: NonNullable<AlertDefinition['on_error']>
  readonly notify: readonly string[]
  readonly enabled: boolean
}

const EMPTY: AlertDefinition = { name: '', query: '', every: '5m', window: '1h', condition: 'any_row' }

/** The draft of an alert or a template; null: of a new alert. */
export function draftOfAlert(definition: AlertDefinition | null): AlertDraft {
  const given = definition ?? EMPTY
  const { condition } = given
  const comparison = condition === 'any_row' ? null : condition
  return {
    name: given.name,
    queryId: given.query_id ?? '',
    query: given.query ?? '',
    params: textsOf((given.params ?? {}) as never),
    every: given.every,
    window: given.window ?? '',
    by: (given.by ?? []).join(', '),
    isAnyRow: definition !== null && comparison === null,
    column: comparison?.column ?? '',
    op: comparison?.op ?? '>',
    value: comparison === null ? '' : textOf(comparison.value),
    recover: comparison?.recover_value === undefined ? '' : textOf(comparison.recover_value),
    for: given.for ?? '',
    keep: given.keep_firing_for ?? '',
    renotify: given.renotify ?? '',
    noData: given.no_data ?? 'ok',
    onError: given.on_error ?? 'last',
    notify: given.notify ?? [],
    enabled: given.enabled ?? true,
  }
}

/** Operators that have no other value to recover at. */
const EQUALITIES: readonly string[] = ['=', '!=']

/** Whether an alert can recover at another value than the one at which it fires. */
export function hasRecovery({ isAnyRow, op }: Pick<AlertDraft, 'isAnyRow' | 'op'>): boolean {
  return !isAnyRow && !EQUALITIES.includes(op)
}

/** What the API takes for a new alert, or to test one. @throws Error as {@link definitionOf} */
export function newBody(draft: AlertDraft, text: string): AlertDefinition {
  const given = Object.entries(definitionOf(draft, text)).filter(([, value]) => value !== null)
  return Object.fromEntries(given) as unknown as AlertDefinition
}

/**
 * What the API takes to edit an alert: the members that differ. Others must be left out, because states begin anew when what
 * is evaluated is given again.
 */
export function editBody(draft: AlertDraft, text: string, before: AlertDefinition): Partial<AlertDefinition> {
  const old = new Map(Object.entries(definitionOf(draftOfAlert(before), before.query ?? text)))
  const changed = Object.entries(definitionOf(draft, text)).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(old.get(name)),
  )
  // The one that is given replaces the other.
  return Object.fromEntries(changed.filter(([name, value]) => value !== null || !name.startsWith('query')))
}

/**
 * The whole definition; null members have no value.
 * @param text of the query, also of a saved one, whose placeholders the values are for
 * @throws Error if the value of a placeholder for a list is no JSON
 */
function definitionOf(draft: AlertDraft, text: string): AlertDefinition {
  const { name, queryId, every, window, isAnyRow, column, op, value, recover, notify, enabled } = draft
  return {
    name: name.trim(),
    query_id: queryId || null,
    query: queryId === '' ? text : null,
    params: ownParams(text, draft.params, window),
    every,
    window: window || null,
    by: columnsOf(draft.by),
    condition: isAnyRow
      ? 'any_row'
      : {
          column: column.trim(),
          op,
          value: Number(value),
          ...(recover !== '' && hasRecovery(draft) && { recover_value: Number(recover) }),
        },
    for: draft.for || null,
    keep_firing_for: draft.keep || null,
    renotify: draft.renotify || null,
    // Any row is a condition on rows: without one it does not hold.
    no_data: isAnyRow ? 'ok' : draft.noData,
    on_error: draft.onError,
    notify: [...notify],
    enabled,
  }
}

/** The columns of `by`. */
function columnsOf(text: string): string[] {
  return text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
}

/** The placeholders that have fields: all, without those that each evaluation sets. */
export function ownPlaceholders(text: string, window: string) {
  return placeholdersOf(text).filter(({ name }) => window === '' || (name !== 'from' && name !== 'to'))
}

function ownParams(text: string, values: Readonly<Record<string, string>>, window: string): Record<string, unknown> {
  const own = new Set(ownPlaceholders(text, window).map(({ name }) => name))
  const given = paramsOf(text, values)
  return Object.fromEntries(Object.entries(given).filter(([name]) => own.has(name)))
}

/** The values of all placeholders for an evaluation at a time, in Unix milliseconds. */
export function paramsAt(definition: AlertDefinition, text: string, atMs: number): Record<string, unknown> {
  return { ...definition.params, ...timeParams(text, windowAt(definition, atMs)) }
}

function windowAt({ window }: AlertDefinition, atMs: number): TimeRange {
  const seconds = parseDuration(window ?? '') ?? 0
  return { fromMs: atMs - seconds * 1_000, toMs: atMs, bucketSeconds: seconds, isMoving: false }
}
