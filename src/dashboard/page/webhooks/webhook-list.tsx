import { count, counted, words } from '../../../base/format.ts'
import { hrefOf } from '../context/router.ts'
import { nameOf, type Webhook } from '../data/webhooks.ts'
import { Status } from '../parts/states.tsx'
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
      <div class="panel table-scroll agent-table webhook-table">
        <table class="run-list">
          <thead>
            <tr>
              <th scope="col">Webhook</th>
              <th scope="col" class="col-sends">
                Sends
              </th>
              <th scope="col" class="number col-pending">
                Pending
              </th>
              <th scope="col" class="col-last">
                Last success
              </th>
            </tr>
          </thead>
          <tbody>
            {webhooks.map((webhook) => (
              <WebhookRow key={webhook.webhook_id} webhook={webhook} isSelected={webhook.webhook_id === selected} />
            ))}
          </tbody>
        </table>
      </div>
      <p class="hint">{counted(webhooks.length, 'webhook')}</p>
    </div>
  )
}

function WebhookRow({ webhook, isSelected }: { readonly webhook: Webhook; readonly isSelected: boolean }) {
  const { webhook_id, description, url, health } = webhook
  const { last_succeeded_at: last, pending } = health
  return (
    <tr aria-current={isSelected ? 'true' : undefined}>
      <td class="agent-name">
        <a class="row-link" href={hrefOf('webhooks', [webhook_id])} aria-current={isSelected ? 'true' : undefined}>
          {nameOf(webhook)}
        </a>
        <WebhookStatus webhook={webhook} />
        {description && <p class="hint webhook-url">{url}</p>}
      </td>
      <td class="col-sends">{sentBy(webhook)}</td>
      <td class="number col-pending">{pending > 0 ? count(pending) : <span class="hint">–</span>}</td>
      <td class="col-last">{last === null ? <span class="hint">never</span> : <Ago at={last} />}</td>
    </tr>
  )
}

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
