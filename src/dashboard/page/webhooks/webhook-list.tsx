import { count, counted, words } from '../../../base/format.ts'
import { hrefOf } from '../context/router.ts'
import { type Webhook, webhookName } from '../data/webhooks.ts'
import { Status } from '../parts/states.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { Ago } from '../parts/time.tsx'
import { filterDraftOf, selectionOf } from './webhook-draft.ts'

interface ListProps {
  readonly webhooks: readonly Webhook[]
  /** The id of the one that is shown beside the list. */
  readonly selected: string | undefined
}

/** The webhooks of the workspace. */
export function WebhookList({ webhooks, selected }: ListProps) {
  return (
    <div class="list-pane">
      <Table
        box="panel table-scroll resource-table webhook-table"
        rows={webhooks}
        keyOf={({ webhook_id }) => webhook_id}
        link={(webhook) => ({ href: hrefOf('webhooks', [webhook.webhook_id]), children: webhookName(webhook) })}
        isSelected={({ webhook_id }) => webhook_id === selected}
        columns={COLUMNS}
      />
      <p class="hint">{counted(webhooks.length, 'webhook')}</p>
    </div>
  )
}

const COLUMNS: readonly Column<Webhook>[] = [
  {
    title: 'Webhook',
    class: 'resource-name',
    cell: (webhook) => (
      <>
        <WebhookStatus webhook={webhook} />
        {webhook.description && <p class="hint webhook-url">{webhook.url}</p>}
      </>
    ),
  },
  { title: 'Sends', class: 'col-sends', cell: sentBy },
  {
    title: 'Pending',
    isNumber: true,
    class: 'col-pending',
    cell: ({ health: { pending } }) => (pending > 0 ? count(pending) : <span class="hint">–</span>),
  },
  {
    title: 'Last success',
    class: 'col-last',
    cell: ({ health: { last_succeeded_at: at } }) => (at === null ? <span class="hint">never</span> : <Ago at={at} />),
  },
]

/** Whether a webhook works: one that has failed since its last success says so. */
export function WebhookStatus({ webhook: { status, health } }: { readonly webhook: Webhook }) {
  if (status === 'active' && health.failing_since !== null) return <Status name="failed" text="failing" />
  return <Status name={status} />
}

/** What a webhook is sent, in a few words. */
export function sentBy({ filter, format }: Pick<Webhook, 'filter' | 'format'>): string {
  const suffix = format === 'slack' ? ', to Slack' : ''
  const selection = selectionOf(filter)
  if (filter === null || selection === 'default') return `finished runs, approvals and questions${suffix}`
  if (selection === 'all') return `all activity${suffix}`
  const { agents, kinds, types, statuses, others } = filterDraftOf(filter)
  const parts = [
    kinds.length > 0 ? kinds.map((kind) => `${kind}s`).join(', ') : types === '' ? 'activity' : 'events',
    types !== '' && `of type ${types}`,
    statuses.length > 0 && `that ${kinds.length > 0 ? 'are' : 'is'} ${statuses.map(words).join(' or ')}`,
    agents.length > 0 && `of ${counted(agents.length, 'agent')}`,
  ]
  const more = Object.keys(others).map(words)
  const filtered = more.length === 0 ? '' : `, filtered by ${more.join(', ')}`
  return parts.filter((part) => part !== false).join(' ') + filtered + suffix
}
