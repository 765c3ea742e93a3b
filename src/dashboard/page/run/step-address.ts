import { addressState, oneOf, texts } from '../context/address-state.ts'
import { address, hrefOf } from '../context/router.ts'
import type { Bar } from './bars.ts'

/** The step, or the run itself, that the page of a run shows; it is part of the address. */

/** Levels of events, the least important first. */
export const LEVELS: readonly string[] = ['debug', 'info', 'warn', 'error']

/** What of a run is shown. A link may name a task or an event in the place of a step. */
export const RUN = addressState({
  ...texts('step', 'task', 'event', 'tab', 'find'),
  pane: oneOf(['content', 'steps']),
  level: oneOf(['', ...LEVELS.slice(1)]),
})
const NOTHING = { task: '', event: '', pane: 'content' } as const

/** Shows a step; null shows the run. */
export function selectStep(id: string | null): void {
  RUN.set({ ...NOTHING, step: id ?? '' })
}

/** The link to a step of the run that is shown. */
export function stepHref(id: string): string {
  const { view, path, query } = address.value
  return hrefOf(view, path, { ...query, ...RUN.write({ ...NOTHING, step: id }) })
}

/** The step that has an event, which links name by its id or its position in the run. */
export function stepOfEvent<T extends Pick<Bar, 'events'>>(bars: readonly T[], event: string): T | undefined {
  return bars.find(({ events }) => events.some(({ id, seq }) => id === event || String(seq) === event))
}
