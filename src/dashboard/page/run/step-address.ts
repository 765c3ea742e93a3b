import { address, hrefOf, setQuery } from '../context/router.ts'
import type { Bar } from './bars.ts'

/** The step, or the run itself, that the page of a run shows; it is part of the address. */

/** Members of the query that say what of the run is shown. */
const NOTHING = { step: null, task: null, event: null, pane: null }

/** Shows a step; null shows the run. */
export function selectStep(id: string | null): void {
  setQuery({ ...NOTHING, step: id })
}

/** The link to a step of the run that is shown. */
export function stepHref(id: string): string {
  const { view, path, query } = address.value
  return hrefOf(view, path, { ...query, ...NOTHING, step: id })
}

/** The step that has an event, which links name by its id or its position in the run. */
export function stepOfEvent<T extends Pick<Bar, 'events'>>(bars: readonly T[], event: string): T | undefined {
  return bars.find(({ events }) => events.some(({ id, seq }) => id === event || String(seq) === event))
}
