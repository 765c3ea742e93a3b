import type { Clock } from '../../base/clock.ts'
import { ApiError, invalid } from '../../base/errors.ts'
import type { PageOf } from '../../base/http/page.ts'
import type { PageQuery } from '../../base/http/schema.ts'
import { checkVersion } from '../../base/http/version.ts'
import { mint as freshIds, type Mint } from '../../base/ids.ts'
import { withIsoTimes } from '../../base/timestamp.ts'
import { insertEvents } from '../../stores/journal/outbox-rows.ts'
import type { Sql } from '../../stores/postgres/connect.ts'
import { workspaceResource } from '../../stores/postgres/workspace-resource.ts'
import type { EditOptions } from '../../tenants/keys/resource-routes.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import type { Analytics } from '../analytics/analytics.ts'
import {
  changesEvaluation,
  editedSettings,
  evaluatedOf,
  newSettings,
  type QueryText,
  type Settings,
  shownSettings,
} from './definition.ts'
import { checkEvaluated } from './evaluation.ts'
import { eventOf } from './events.ts'
import { resetAll, type Transition } from './machine.ts'
import { nextTick, SETTINGS_COLUMNS, STORED_COLUMNS, type StoredAlert } from './rows.ts'
import type { Alert, CreateAlert, DeletedAlert, EditAlert } from './schema.ts'
import { fromStored, NO_STATES, type StoredStates, toStored } from './states.ts'

interface AlertStoreDeps {
  readonly sql: Sql
  readonly clock: Clock
  readonly analytics: Analytics
  /** Called after each commit that wrote to the outbox. */
  readonly onChange: () => void
  /** Milliseconds of a second; tests take fewer. */
  readonly secondMs: number
}

/** Maximum of alerts per workspace. */
export const ALERTS_MAX = 100
/** An edit that races with others is repeated. */
const EDIT_ATTEMPTS_MAX = 5

/** Shown as the error of an alert whose evaluation is late by more than an interval. */
const LATE =
  'not evaluated since next_at: SQL does not have everything yet that was reported by then, or evaluations take too long'

const ROWS = workspaceResource({
  table: 'alerts',
  id: 'alert_id',
  one: 'an alert',
  many: 'alerts',
  max: ALERTS_MAX,
  long: ['query', 'params', 'condition', 'shown_states'],
})

type AlertRow = Settings &
  Pick<StoredAlert, 'alert_id' | 'version' | 'evaluated_at' | 'next_at' | 'error' | 'created_at'> &
  Pick<StoredStates, 'shown_states' | 'series_count'> & {
    readonly updated_at: Date
  }

/** Definitions and states of alerts (docs/alerts.md). */
export class AlertStore {
  constructor(private readonly deps: AlertStoreDeps) {}

  /**
   * @throws ApiError VALIDATION_ERROR for a definition that cannot be evaluated; CONFLICT when the name is taken or the
   *   workspace has reached its limit; RATE_LIMITED without a free query slot; UNAVAILABLE without ClickHouse
   */
  async create(caller: Caller, body: CreateAlert, mint: Mint, signal: AbortSignal): Promise<Alert> {
    const { sql, clock, secondMs } = this.deps
    const { workspaceId } = caller
    const settings = newSettings(body)
    await this.check(caller, settings, signal)
    const now = clock.now()
    const row = {
      alert_id: mint.uuid(),
      workspace_id: workspaceId,
      ...settings,
      ...toStored(NO_STATES, []),
      next_at: settings.is_enabled ? new Date(nextTick(now, settings.every_seconds * secondMs)) : null,
      created_at: new Date(now),
      updated_at: new Date(now),
    }
    await ROWS.insert(sql, row)
    return this.get(caller, row.alert_id)
  }

  /** @throws ApiError NOT_FOUND */
  async get({ workspaceId }: Caller, alertId: string): Promise<Alert> {
    const { sql } = this.deps
    return this.toRecord(await ROWS.find<AlertRow>(sql, workspaceId, alertId, shownColumns(sql)))
  }

  async list({ workspaceId }: Caller, page: PageQuery): Promise<PageOf<Alert>> {
    const { sql } = this.deps
    return ROWS.page<AlertRow, Alert>(sql, workspaceId, page, shownColumns(sql), (row) => this.toRecord(row))
  }

  /**
   * Changes the given members. When they change what is evaluated, or disable the alert, all states are ok again, and series
   * that alert are resolved.
   * @throws ApiError NOT_FOUND; CONFLICT at another version; as {@link create}
   */
  async edit(caller: Caller, alertId: string, edit: EditAlert, { version, signal }: EditOptions): Promise<Alert> {
    for (let attempt = 1; attempt <= EDIT_ATTEMPTS_MAX; attempt++) {
      const alert = await this.loadAt(caller, alertId, version)
      const settings = editedSettings(alert, edit)
      const isNew = changesEvaluation(edit)
      // Only if given: a webhook that was deleted meanwhile does not block other edits.
      if (edit.notify !== undefined) await this.checkWebhooks(caller, settings)
      if (isNew) await this.checkQuery(caller, settings, signal)
      if (await this.store(alert, settings, isNew || !settings.is_enabled)) return this.get(caller, alertId)
    }
    throw new ApiError('CONFLICT', 'the alert was edited by others at the same time; try again', {
      reason: 'being_changed',
    })
  }

  /** Series that alert are resolved. @throws ApiError NOT_FOUND; CONFLICT at another version */
  async delete(caller: Caller, alertId: string, version: number | undefined): Promise<DeletedAlert> {
    const { sql, onChange } = this.deps
    for (let attempt = 1; attempt <= EDIT_ATTEMPTS_MAX; attempt++) {
      const alert = await this.loadAt(caller, alertId, version)
      const [row] = await sql`
        with changed as (
          delete from alerts where alert_id = ${alertId} and version = ${alert.version}
            and evaluated_at is not distinct from ${alert.evaluated_at}::timestamptz
          returning alert_id
        ), logged as (${insertEvents(sql, this.resolved(alert))})
        select alert_id from changed`
      if (row === undefined) continue
      onChange()
      return { alert_id: alert.alert_id, deleted: true }
    }
    throw new ApiError('CONFLICT', 'the alert is being changed; try again', { reason: 'being_changed' })
  }

  /** An alert with its states. @throws ApiError NOT_FOUND */
  async load({ workspaceId }: Pick<Caller, 'workspaceId'>, alertId: string): Promise<StoredAlert> {
    const { sql } = this.deps
    return ROWS.find(sql, workspaceId, alertId, sql.unsafe(STORED_COLUMNS))
  }

  /** The same at this version, which the statement that changes it compares again; undefined: at any. */
  private async loadAt(caller: Caller, alertId: string, version: number | undefined): Promise<StoredAlert> {
    const alert = await this.load(caller, alertId)
    checkVersion('an alert', alert, version)
    return alert
  }

  /** The query of an alert, or the saved one that it names. @throws ApiError VALIDATION_ERROR when that does not exist */
  async queryOf({ workspaceId }: Pick<Caller, 'workspaceId'>, settings: Settings): Promise<QueryText> {
    const { query, query_id } = settings
    if (query !== null) return { query, params: null }
    const [saved] = await this.deps.sql<QueryText[]>`
      select query, params from saved_queries where workspace_id = ${workspaceId} and query_id = ${query_id}`
    if (saved === undefined) throw invalid('query_id', 'saved query does not exist')
    return saved
  }

  /** @throws ApiError VALIDATION_ERROR for a definition that cannot be evaluated */
  async check(caller: Caller, settings: Settings, signal: AbortSignal): Promise<void> {
    await this.checkWebhooks(caller, settings)
    await this.checkQuery(caller, settings, signal)
  }

  private async checkWebhooks({ workspaceId }: Caller, { notify }: Settings): Promise<void> {
    const webhooks = await this.deps.sql<{ webhook_id: string }[]>`
      select webhook_id from webhooks
      where workspace_id = ${workspaceId} and webhook_id = any(${notify as string[]}::uuid[])`
    const known = new Set(webhooks.map((row) => row.webhook_id))
    const unknown = notify.findIndex((id) => !known.has(id))
    if (unknown >= 0) throw invalid(`notify[${unknown}]`, 'webhook does not exist')
  }

  private async checkQuery(caller: Caller, settings: Settings, signal: AbortSignal): Promise<void> {
    const { clock, analytics, secondMs } = this.deps
    const evaluated = evaluatedOf(settings, await this.queryOf(caller, settings), secondMs)
    using session = analytics.asOf(caller)
    await checkEvaluated(session, evaluated, clock.now(), signal)
  }

  /** @returns false if the alert has been edited or evaluated meanwhile */
  private async store(alert: StoredAlert, settings: Settings, isReset: boolean): Promise<boolean> {
    const { sql, clock, onChange, secondMs } = this.deps
    const now = clock.now()
    const isScheduled = settings.is_enabled && (isReset || alert.next_at === null)
    const changed = {
      ...pickSettings(settings),
      version: alert.version + 1,
      ...(isReset && { ...toStored(NO_STATES, []), error: null }),
      ...(isScheduled && { next_at: new Date(nextTick(now, settings.every_seconds * secondMs)) }),
      ...(!settings.is_enabled && { next_at: null }),
      updated_at: new Date(now),
    }
    const [row] = await sql`
      with changed as (
        update alerts set ${sql(changed as never)} where alert_id = ${alert.alert_id} and version = ${alert.version}
          and evaluated_at is not distinct from ${alert.evaluated_at}::timestamptz
        returning alert_id
      ), logged as (${insertEvents(sql, isReset ? this.resolved(alert) : [])})
      select alert_id from changed`.catch((error: unknown) => {
      throw ROWS.nameConflict(error, settings.name)
    })
    if (row !== undefined) onChange()
    return row !== undefined
  }

  private toRecord(row: AlertRow): Alert {
    const { alert_id, series_count, shown_states: states, version, evaluated_at, next_at, created_at, updated_at } = row
    const { clock, secondMs } = this.deps
    const lateMs = next_at === null ? 0 : clock.now() - next_at.getTime()
    const error = row.error ?? (lateMs > row.every_seconds * secondMs ? LATE : null)
    const times = withIsoTimes({ evaluated_at, next_at, created_at, updated_at })
    return { alert_id, ...shownSettings(row), series_count, states, error, version, ...times } as Alert
  }

  /** The events that reset all series of an alert to ok. */
  private resolved(alert: StoredAlert) {
    const now = this.deps.clock.now()
    const details = { mint: freshIds, now }
    return resetAll(fromStored(alert.states), now).map((each: Transition) => eventOf(alert, each, details))
  }
}

/** The settings of a row that has more. */
function pickSettings(settings: Settings) {
  return Object.fromEntries(SETTINGS_COLUMNS.map((name) => [name, settings[name]]))
}

function shownColumns(sql: Sql) {
  return sql.unsafe(
    `${SETTINGS_COLUMNS.join(', ')}, alert_id, shown_states, series_count, version, evaluated_at, next_at, error, created_at, updated_at`,
  )
}
