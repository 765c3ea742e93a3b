import { useState } from 'preact/hooks'
import { address, hrefOf, navigate, setQuery } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { useLoad } from '../data/loading.ts'
import { listWebhooks, type NewWebhook, type Webhook } from '../data/webhooks.ts'
import { Button, Icon } from '../parts/controls.tsx'
import { Empty, Problem, Skeleton } from '../parts/states.tsx'
import { WebhookForm } from './webhook-form.tsx'
import { WebhookList } from './webhook-list.tsx'
import { WebhookPane } from './webhook-pane.tsx'

const REFRESH_MS = 15_000

/** The webhooks of the workspace, and beside them the one that the address names. */
export function WebhooksView() {
  const { api } = useSession()
  const { path, query } = address.value
  const { data, problem, isLoading, reload } = useLoad((signal) => listWebhooks(api, signal), [], {
    everyMs: REFRESH_MS,
  })
  /** Its secret is shown until the user closes it or leaves the view. */
  const [made, setMade] = useState<NewWebhook | null>(null)
  const id = path[0]?.toLowerCase()
  const isNew = query.new !== undefined
  const webhook = data?.find(({ webhook_id }) => webhook_id === id)
  const created = (stored: Webhook | NewWebhook) => {
    if ('secret' in stored) setMade(stored)
    reload()
    navigate(hrefOf('webhooks', [stored.webhook_id]))
  }
  return (
    <section class={`view webhooks ${webhook === undefined && !isNew ? '' : 'with-detail'}`} aria-label="Webhooks">
      <div class="view-head">
        <h1>Webhooks</h1>
        <div class="view-tools">
          <a class="button primary small" href={hrefOf('webhooks', [], { new: 'yes' })}>
            <Icon name="plus" />
            <span>New webhook</span>
          </a>
        </div>
      </div>
      {problem !== undefined && <Problem problem={problem} />}
      {data === undefined && problem === undefined && <Skeleton lines={6} />}
      {id !== undefined && data !== undefined && webhook === undefined && !isLoading && (
        <p class="hint">This webhook does not exist. Somebody may have deleted it.</p>
      )}
      {data !== undefined && (
        <div class="split">
          {data.length === 0 ? <NoWebhooks /> : <WebhookList webhooks={data} selected={webhook?.webhook_id} />}
          {isNew && (
            <section class="panel detail" aria-label="New webhook">
              <div class="detail-head">
                <h2>New webhook</h2>
                <Button icon="close" label="Close" onClick={() => setQuery({ new: null })} />
              </div>
              <WebhookForm webhook={null} saved={created} />
            </section>
          )}
          {webhook !== undefined && !isNew && (
            <WebhookPane
              key={webhook.webhook_id}
              webhook={webhook}
              made={made?.webhook_id === webhook.webhook_id ? made : null}
              setMade={setMade}
              reload={reload}
            />
          )}
        </div>
      )}
    </section>
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
