import { type Filter, parseFilter, withWorkspaceEvents } from '../live/filter.ts'
import type { StoredWebhook } from './schema.ts'

const ALL = { agentId: null, runId: null }

/** Without a filter: the ends of runs, and the pauses in which they wait for a person. */
const DEFAULT: Filter = {
  kinds: new Set(['event', 'run']),
  types: ['approval.requested', 'input.requested'],
  statuses: new Set(['completed', 'failed', 'cancelled', 'timed_out']),
  key: 'webhooks',
}

/** @throws ApiError VALIDATION_ERROR that names the field, such as `filter.level` */
export function parseWebhookFilter(input: Readonly<Record<string, unknown>>): Filter {
  return parseFilter(input, 'filter', ALL)
}

/** What an endpoint subscribes to: what its filter selects, and workspace events. Of these it is sent the alerts that name it. */
export function filterOf({ filter }: Pick<StoredWebhook, 'filter'>): Filter {
  return withWorkspaceEvents(filter === null ? DEFAULT : parseWebhookFilter(filter.parse() as Record<string, unknown>))
}
