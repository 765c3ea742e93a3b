import { eventBodies } from '../../bodies.ts'

/** An event as a store gets it that has no runs of its own. */
export interface EventRecord {
  readonly run_id: string
  readonly type: string
  readonly level: string
  readonly payload: object
  readonly occurred_at: string
}

const RUNS = 50
const CALLS_PER_CONNECTION = 3

/** The events of a connection's calls: those that the service gets, each with its run. */
export function callsOf(connection: number, eventsPerCall: number): EventRecord[][] {
  const calls = recordsOf(eventsPerCall)
  return Array.from({ length: CALLS_PER_CONNECTION }, (_, index) => calls[(connection * 3 + index) % calls.length]!)
}

const cache = new Map<number, EventRecord[][]>()

function recordsOf(eventsPerCall: number): EventRecord[][] {
  const known = cache.get(eventsPerCall)
  if (known !== undefined) return known
  const runIds = Array.from({ length: RUNS }, () => Bun.randomUUIDv7())
  const calls = eventBodies(runIds, eventsPerCall).map((body) => {
    const { run_id, events } = JSON.parse(body) as { run_id: string; events: Omit<EventRecord, 'run_id'>[] }
    return events.map((event) => ({ run_id, ...event }))
  })
  cache.set(eventsPerCall, calls)
  return calls
}
