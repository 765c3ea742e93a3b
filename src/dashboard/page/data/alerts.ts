import { type Api, listAll } from './api.ts'
import type { Schemas } from './records.ts'

export type Alert = Schemas['Alert']
/** The settings of an alert, from a record, a template or a form. Members without a value are null or left out. */
export type AlertDefinition = Pick<Alert, 'name' | 'every' | 'condition'> & Partial<Pick<Alert, OptionalMember>>
type OptionalMember = Exclude<keyof Schemas['CreateAlert'], 'name' | 'every' | 'condition'>
export type AlertTest = Schemas['AlertTest']
export type AlertTemplate = Schemas['AlertTemplates']['items'][number]
export type Transition = Schemas['AlertTransition']
export type AlertState = Transition['to']
export type AlertSeries = Transition['series']
export type Comparison = Exclude<AlertDefinition['condition'], string>

/** Above the limit of the service. */
const ALERTS_MAX = 1_000
export const ALERTS_PATH = '/api/v1/alerts'

/** The alerts of the workspace: first those that fire, then by name. @throws ApiFailure */
export async function listAlerts(api: Api, signal?: AbortSignal): Promise<readonly Alert[]> {
  const { items } = await listAll<Alert>(api, ALERTS_PATH, ALERTS_MAX, signal)
  return items.toSorted((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name))
}

export function pathOfAlert({ alert_id }: Pick<Alert, 'alert_id'>): string {
  return `${ALERTS_PATH}/${alert_id}`
}

const URGENCY: readonly ShownState[] = ['firing', 'error', 'no_data', 'recovering', 'pending', 'ok', 'disabled']
/** The state of an alert as a whole. */
type ShownState = AlertState | 'disabled'

/** The most urgent state of its series. */
export function stateOf({ enabled, states }: Pick<Alert, 'enabled' | 'states'>): ShownState {
  if (!enabled) return 'disabled'
  return URGENCY.find((state) => states.some((each) => each.state === state)) ?? 'ok'
}

function rank(alert: Alert): number {
  return URGENCY.indexOf(stateOf(alert))
}

/** Whether an alert in this state has fired and is not resolved yet, as in docs/alerts.md. */
export function isAlerting(state: ShownState): boolean {
  return state === 'firing' || state === 'recovering' || state === 'no_data' || state === 'error'
}

/** `status > 0.05`, in words that fit a line. */
export function conditionText({ condition }: Pick<AlertDefinition, 'condition'>): string {
  return condition === 'any_row' ? 'any row' : `${condition.column} ${condition.op} ${condition.value}`
}
