import type { Webhook } from '../data/webhooks.ts'

/** What a webhook is sent: what the service chooses, what a filter selects, or everything. */
export type Selection = 'default' | 'filter' | 'all'

/** The conditions of a filter that the form shows. Empty: any. */
interface FilterDraft {
  readonly agents: readonly string[]
  readonly kinds: readonly string[]
  /** Separated by spaces or commas. */
  readonly types: string
  readonly statuses: readonly string[]
  /** Conditions that the form does not show; they are kept. */
  readonly others: Readonly<Record<string, unknown>>
}

/** A webhook as the form edits it. */
export interface WebhookDraft extends FilterDraft {
  readonly url: string
  readonly description: string
  readonly selection: Selection
  readonly format: Webhook['format']
  readonly signing: Webhook['signing']
  readonly order: Webhook['order']
}

const NO_FILTER: FilterDraft = { agents: [], kinds: [], types: '', statuses: [], others: {} }

/** The draft of a webhook; null: of a new one. */
export function draftOf(webhook: Webhook | null): WebhookDraft {
  if (webhook === null) {
    return {
      ...NO_FILTER,
      url: '',
      description: '',
      selection: 'default',
      format: 'standard',
      signing: 'v1',
      order: 'run',
    }
  }
  const { url, description, filter, format, signing, order } = webhook
  return {
    url,
    format,
    signing,
    order,
    description: description ?? '',
    selection: selectionOf(filter),
    ...(filter === null ? NO_FILTER : filterDraftOf(filter)),
  }
}

export function selectionOf(filter: object | null): Selection {
  if (filter === null) return 'default'
  return Object.values(filter).every((condition) => condition === undefined) ? 'all' : 'filter'
}

export function filterDraftOf(filter: object): FilterDraft {
  const { agent_id, kind, type, status, ...others } = filter as Readonly<Record<string, unknown>>
  return {
    agents: listOf(agent_id),
    kinds: listOf(kind),
    types: listOf(type).join(', '),
    statuses: listOf(status),
    others,
  }
}

/** The filter that the API takes. */
export function filterOf({
  selection,
  agents,
  kinds,
  types,
  statuses,
  others,
}: FilterDraft & Pick<WebhookDraft, 'selection'>): object | null {
  if (selection === 'default') return null
  if (selection === 'all') return {}
  const wanted = types.split(/[\s,]+/).filter((type) => type !== '')
  const conditions = { agent_id: agents, kind: kinds, type: wanted, status: statuses }
  const given = Object.entries(conditions).filter(([, values]) => values.length > 0)
  return { ...Object.fromEntries(given), ...others }
}

/** The body to create or edit a webhook. `signing` cannot be changed later. */
export function bodyOf(draft: WebhookDraft, isNew: boolean): object {
  const { url, description, format, signing, order } = draft
  return {
    url: url.trim(),
    description: description.trim() || null,
    filter: filterOf(draft),
    format,
    order,
    ...(isNew && { signing }),
  }
}

/** A condition is one value, a list, or a text of several values. */
function listOf(condition: unknown): readonly string[] {
  if (Array.isArray(condition)) return condition.map(String)
  return typeof condition === 'string' ? condition.split(',') : []
}
