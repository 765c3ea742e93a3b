import { Type } from '@sinclair/typebox'
import { t } from 'elysia'
import {
  Body,
  Count,
  Deleted,
  Described,
  Duration,
  EDITED,
  FreeForm,
  JsonText,
  Named,
  Nullable,
  OneOf,
  Page,
  Text,
  Timestamp,
  TimestampIn,
  Uuid,
} from '../../base/http/schema.ts'
import { RunQuery } from '../analytics/schema.ts'

/** Wire schemas of alerts (docs/alerts.md). */

const NAME_LENGTH_MAX = 200
/** A column without an alias has its expression as its name. */
const COLUMN_LENGTH_MAX = 1_000
const BY_MAX = 10
const NOTIFY_MAX = 20
/** Series that the API shows; `alert_states` has the transitions of all. */
export const SHOWN_STATES_MAX = 20

const DAY = 86_400

const AnyDuration = (description: string) => Duration({ minimum: 1, maximum: 30 * DAY, description })

const OPERATORS = ['>', '>=', '<', '<=', '=', '!='] as const
export type Operator = (typeof OPERATORS)[number]

const Column = Text({ minLength: 1, maxLength: COLUMN_LENGTH_MAX, description: 'A column of the result.' })

const Comparison = Body(
  {
    column: Described(Column, 'A numeric column of the result.'),
    op: OneOf(OPERATORS, 'How the column is compared with `value`.'),
    value: Type.Number({ description: 'The condition holds when the comparison does.' }),
    recover_value: t.Optional(
      Type.Number({
        description:
          'A firing series keeps firing until the comparison with this value fails, too, so that a value near the threshold ' +
          'does not fire repeatedly. Not with `=` and `!=`.',
      }),
    ),
  },
  { description: 'Compares a column of each row with a value.' },
)
export type Comparison = typeof Comparison.static

const Condition = t.Union([Comparison, t.Literal('any_row')], {
  description: 'When a series fires: a comparison, or `any_row` (the result has a row of the series).',
})

const NO_DATA_POLICIES = ['ok', 'last', 'alert', 'zero'] as const
const ERROR_POLICIES = ['last', 'alert'] as const

const { query: QueryText, params: Params } = RunQuery.properties

/** What an alert needs to be evaluated. */
const evaluated = {
  query_id: t.Optional(Described(Uuid, 'A saved query; instead of `query`.')),
  query: t.Optional(Described(QueryText, 'One SELECT in ClickHouse SQL; instead of `query_id`.')),
  params: Params,
  every: Duration({ minimum: 60, maximum: DAY, description: 'Time between two evaluations, `1m` to `1d`.' }),
  window: t.Optional(
    Nullable(
      AnyDuration(
        'Sets the placeholders `{from:DateTime64(3)}` and `{to:DateTime64(3)}` of the query: `to` is the time of the ' +
          'evaluation, `from` is this long before it.',
      ),
    ),
  ),
  by: t.Optional(
    t.Array(Column, {
      maxItems: BY_MAX,
      uniqueItems: true,
      description: 'Columns whose values identify a series. Each series has its own state. None: one series.',
    }),
  ),
  condition: Condition,
  for: t.Optional(Nullable(AnyDuration('How long the condition must hold before a series fires.'))),
  keep_firing_for: t.Optional(
    Nullable(AnyDuration('How long the condition must not hold before a firing series is ok.')),
  ),
  no_data: t.Optional(
    OneOf(
      NO_DATA_POLICIES,
      'What a series without a row means: `ok` (default) counts as ok, `last` keeps its state, `alert` alerts, `zero` is ' +
        'the value 0. Without effect for `any_row`: there, the condition does not hold.',
    ),
  ),
  on_error: t.Optional(
    OneOf(ERROR_POLICIES, 'What a failing query means: `last` (default) keeps all states, `alert` alerts.'),
  ),
  renotify: t.Optional(Nullable(AnyDuration('Repeats `alert.fired` at this interval for a series that still alerts.'))),
}

const { every: Every, condition: ConditionProperty, ...optional } = evaluated

/** The members of a definition, saved or only tested. */
const definition = {
  name: Text({ minLength: 1, maxLength: NAME_LENGTH_MAX, description: 'Unique in the workspace.' }),
  ...evaluated,
  notify: t.Optional(
    t.Array(Uuid, { maxItems: NOTIFY_MAX, description: 'The webhooks that get `alert.fired` and `alert.resolved`.' }),
  ),
  enabled: t.Optional(t.Boolean({ description: 'Whether it is evaluated; true by default.' })),
}

/** Body of `POST /api/v1/alerts`. */
export const CreateAlert = Named('CreateAlert', Body(definition))
export type CreateAlert = typeof CreateAlert.static

/** Body of `PATCH /api/v1/alerts/:alert_id`: given members change, null removes an optional one. */
export const EditAlert = Named(
  'EditAlert',
  Body({
    ...optional,
    name: t.Optional(definition.name),
    every: t.Optional(Every),
    condition: t.Optional(ConditionProperty),
    notify: definition.notify,
    enabled: definition.enabled,
  }),
)
export type EditAlert = typeof EditAlert.static

const STATES = ['ok', 'pending', 'firing', 'recovering', 'no_data', 'error'] as const
export type State = (typeof STATES)[number]

const Series = t.Record(t.String(), t.Unknown(), {
  description: 'The values of the columns of `by`; empty for an alert without them.',
})
const Value = Nullable(
  Type.Number({ description: 'The value of the condition’s column; null for `any_row` and without a row.' }),
)

const SeriesState = Named(
  'AlertSeriesState',
  t.Object(
    {
      series: Series,
      state: OneOf(STATES, 'The state of the series.'),
      value: Value,
      since: Described(Timestamp, 'Time of the evaluation that led to the state.'),
    },
    { description: 'The state of one series of an alert.' },
  ),
)

export const Alert = Named(
  'Alert',
  t.Object(
    {
      alert_id: Described(Uuid, 'The alert.'),
      name: t.String({ description: 'Unique in the workspace.' }),
      query_id: Described(Nullable(Uuid), 'The saved query; null if the alert has a query of its own.'),
      query: Described(Nullable(t.String()), 'The query of the alert itself; null if it uses a saved one.'),
      params: Described(FreeForm, 'Values of placeholders.'),
      every: t.String({ description: 'Time between two evaluations.' }),
      window: Described(Nullable(t.String()), 'The time from `from` to `to`.'),
      by: t.Array(t.String(), { description: 'Columns whose values identify a series.' }),
      condition: Described(JsonText(Condition), 'When a series fires.'),
      for: Described(Nullable(t.String()), 'How long the condition must hold before a series fires.'),
      keep_firing_for: Described(Nullable(t.String()), 'How long it must not hold before a series is ok again.'),
      no_data: OneOf(NO_DATA_POLICIES, 'What a series without a row means.'),
      on_error: OneOf(ERROR_POLICIES, 'What a failing query means.'),
      renotify: Described(
        Nullable(t.String()),
        'The interval at which `alert.fired` is repeated for a series that still alerts.',
      ),
      notify: t.Array(Uuid, { description: 'The webhooks that are notified.' }),
      enabled: t.Boolean({ description: 'Whether it is evaluated.' }),
      series_count: Count('Series with a state.'),
      states: Described(
        JsonText(t.Array(SeriesState)),
        `The first ${SHOWN_STATES_MAX} series, those that alert first. All transitions: SQL table \`alert_states\`.`,
      ),
      evaluated_at: Described(Nullable(Timestamp), 'Time of the last evaluation; null before the first.'),
      next_at: Described(Nullable(Timestamp), 'Time of the next one; null while it is disabled.'),
      error: Described(
        Nullable(t.String()),
        'Why the last evaluation failed, what was skipped, or that the next one is late; null if all is well.',
      ),
      ...EDITED,
    },
    { description: 'A query that runs at an interval, and notifies when a condition starts and stops holding.' },
  ),
)
export type Alert = typeof Alert.static

export const AlertPage = Page('AlertPage', Alert)

/** `:alert_id` of a path. */
export const AlertParams = t.Object({ alert_id: Described(Uuid, 'The alert.') })

export const DeletedAlert = Deleted('DeletedAlert', { alert_id: Described(Uuid, 'The alert.') })
export type DeletedAlert = typeof DeletedAlert.static

const range = {
  from: Described(TimestampIn, 'The first evaluation is at or after this time.'),
  to: Described(TimestampIn, 'The last evaluation is at or before this time, which must be past.'),
  step: t.Optional(AnyDuration('Time between two evaluations; `every` by default.')),
}

/** Body of `POST /api/v1/alerts/:alert_id/test`. */
export const TestAlert = Named('TestAlert', Body(range))
export type TestAlert = typeof TestAlert.static

/** Body of `POST /api/v1/alerts/test`. */
export const TestDefinition = Named('TestAlertDefinition', Body({ ...definition, ...range }))
export type TestDefinition = typeof TestDefinition.static

const Transition = Named(
  'AlertTransition',
  t.Object(
    {
      type: OneOf(['alert.fired', 'alert.resolved', 'alert.changed'], 'The type of the event.'),
      series: Series,
      from: OneOf(STATES, 'The previous state.'),
      to: OneOf(STATES, 'The new state.'),
      at: Described(Timestamp, 'Time of the evaluation.'),
      value: Value,
      renotified: t.Boolean({ description: 'Whether it only repeats an earlier `alert.fired` (see `renotify`).' }),
    },
    { description: 'A change of the state of a series.' },
  ),
)

export const AlertTest = Named(
  'AlertTest',
  t.Object(
    {
      transitions: t.Array(Transition, { description: 'In order of time.' }),
      ticks: Count('Evaluations.'),
      complete: t.Boolean({
        description: 'False if the limit of time, evaluations or transitions ended the test early.',
      }),
      through: Described(Nullable(Timestamp), 'Time of the last evaluation; null if there was none.'),
      error: Described(Nullable(t.String()), 'Why the last failed evaluation failed; null if none failed.'),
    },
    { description: 'How the states of an alert would have changed.' },
  ),
)
export type AlertTest = typeof AlertTest.static

const Template = t.Object({
  template: t.String({ description: 'The name of the template.' }),
  description: t.String({ description: 'What it alerts on.' }),
  definition: Described(CreateAlert, 'Can be posted to `/api/v1/alerts` as it is.'),
})

export const AlertTemplates = Named(
  'AlertTemplates',
  t.Object(
    { items: t.Array(Template, { description: 'The templates.' }) },
    { description: 'Complete definitions to start from.' },
  ),
)
export type AlertTemplates = typeof AlertTemplates.static
