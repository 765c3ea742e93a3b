import { count, counted } from '../../../base/format.ts'
import { hrefOf } from '../context/router.ts'
import { type NewWebhook, type Webhook, webhookName } from '../data/webhooks.ts'
import { BackLink, Id, openTab, Tabs } from '../parts/controls.tsx'
import { Command } from '../parts/hints.tsx'
import { Facts } from '../parts/states.tsx'
import { Ago } from '../parts/time.tsx'
import { DeliveryChart } from './delivery-chart.tsx'
import { DeliveryList } from './delivery-list.tsx'
import { MadeSecret, VerifyHelp } from './made-secret.tsx'
import { type ActionProps, WebhookActions } from './webhook-actions.tsx'
import { WebhookForm } from './webhook-form.tsx'
import { sentBy, WebhookStatus } from './webhook-list.tsx'

const TABS = { deliveries: 'Deliveries', settings: 'Settings' }

interface PaneProps extends ActionProps {
  /** With the secret that is still to be shown. */
  readonly made: NewWebhook | null
}

/** One webhook: whether it works, its deliveries, and its settings. */
export function WebhookPane({ webhook, made, setMade, reload }: PaneProps) {
  const tab = openTab({ name: 'tab', tabs: TABS })
  return (
    <section class="panel detail webhook" aria-label="Webhook">
      <div class="detail-head">
        <BackLink href={hrefOf('webhooks')} label="All webhooks" />
        <h2>{webhookName(webhook)}</h2>
        <WebhookStatus webhook={webhook} />
        <Id id={webhook.webhook_id} what="webhook id" />
        <WebhookActions webhook={webhook} setMade={setMade} reload={reload} />
      </div>
      {made !== null && <MadeSecret made={made} close={() => setMade(null)} />}
      <Health webhook={webhook} />
      <Tabs label="Parts of the webhook" name="tab" tabs={TABS} />
      {tab === 'deliveries' && (
        <>
          <DeliveryChart webhook={webhook} />
          <DeliveryList webhook={webhook} />
        </>
      )}
      {tab === 'settings' && (
        <>
          <WebhookForm webhook={webhook} saved={reload} />
          {webhook.public_key !== null && <Command label="Public key" text={webhook.public_key} />}
          <VerifyHelp webhook={webhook} />
        </>
      )}
    </section>
  )
}

/** Whether deliveries arrive, and how late. */
function Health({ webhook }: { readonly webhook: Webhook }) {
  const { url, description, status, disabled_reason, health } = webhook
  const { failing_since: failing, last_succeeded_at: succeeded, last_failed_at: failed, pending, lag } = health
  return (
    <>
      {status === 'disabled' && (
        <p class={disabled_reason === null ? 'hint' : 'problem'}>
          {disabled_reason !== null && `Disabled by the service: ${disabled_reason}. `}
          Nothing is sent. When it is enabled again, it continues where it stopped.
        </p>
      )}
      {status === 'behind' && (
        <p class="problem">
          Too many deliveries are pending, so new activity waits in the log until the receiver works again.
        </p>
      )}
      <Facts
        facts={[
          ['URL', description && <code key="url">{url}</code>],
          ['Sends', sentBy(webhook)],
          ['Failing since', failing !== null && <Ago key="since" at={failing} />],
          ['Last success', succeeded !== null && <Ago key="success" at={succeeded} />],
          ['Last failure', failed !== null && <Ago key="failure" at={failed} />],
          ['Pending', pending > 0 && count(pending)],
          ['Lag', lag === null ? 'unknown' : lag === 0 ? 'none' : counted(lag, 'position')],
          ['Recovery', health.recovering_until !== null && 'delivering earlier activity again'],
        ]}
      />
    </>
  )
}
