import { useState } from 'preact/hooks'
import { address, hrefOf, navigate } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { useLoad } from '../data/loading.ts'
import { listWebhooks, type NewWebhook, type Webhook } from '../data/webhooks.ts'
import { ResourceView } from '../parts/resource-view.tsx'
import { Empty } from '../parts/states.tsx'
import { WebhookForm } from './webhook-form.tsx'
import { WebhookList } from './webhook-list.tsx'
import { WebhookPane } from './webhook-pane.tsx'

const REFRESH_MS = 15_000

/** The webhooks of the workspace, and beside them the one that the address names. */
export function WebhooksView() {
  const { api } = useSession()
  const { path } = address.value
  const list = useLoad((signal) => listWebhooks(api, signal), [], { everyMs: REFRESH_MS })
  /** Its secret is shown until the user closes it or leaves the view. */
  const [made, setMade] = useState<NewWebhook | null>(null)
  const webhook = list.data?.find(({ webhook_id }) => webhook_id === path[0]?.toLowerCase())
  const created = (stored: Webhook | NewWebhook) => {
    if ('secret' in stored) setMade(stored)
    list.reload()
    navigate(hrefOf('webhooks', [stored.webhook_id]))
  }
  const pane = webhook && (
    <WebhookPane
      key={webhook.webhook_id}
      webhook={webhook}
      made={made?.webhook_id === webhook.webhook_id ? made : null}
      setMade={setMade}
      reload={list.reload}
    />
  )
  const form = <WebhookForm webhook={null} saved={created} />
  return (
    <ResourceView view="webhooks" title="Webhooks" noun="webhook" list={list} pane={pane} form={form}>
      {list.data?.length ? <WebhookList webhooks={list.data} selected={webhook?.webhook_id} /> : <NoWebhooks />}
    </ResourceView>
  )
}

function NoWebhooks() {
  return (
    <div class="list-pane">
      <Empty title="No webhooks yet" icon="webhooks">
        <p>
          A webhook is a URL that the service calls when a run ends, when something waits for a person, or when an alert
          fires.
        </p>
        <p>Deliveries are signed, retried when they fail, and in order within each run.</p>
      </Empty>
    </div>
  )
}
