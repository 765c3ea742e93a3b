import { useState } from 'preact/hooks'
import { duration } from '../../../base/format.ts'
import { addressState, oneOf } from '../context/address-state.ts'
import { hrefOfRun } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import type { Listed } from '../data/api.ts'
import { useAttempt, useLoad } from '../data/loading.ts'
import { type Delivery, pathOf, type Webhook } from '../data/webhooks.ts'
import { Button, CopyButton } from '../parts/controls.tsx'
import { Select } from '../parts/fields.tsx'
import { Loaded, ProblemText, Status } from '../parts/states.tsx'
import { Ago, Ahead } from '../parts/time.tsx'

const REFRESH_MS = 10_000
const LIST_LIMIT = 100
/** The position of tests, which have no activity and so cannot be sent again. */
const TEST_SEQ = 0
const STATUSES = [
  ['', 'Any status'],
  ['pending', 'Pending'],
  ['succeeded', 'Succeeded'],
  ['failed', 'Given up'],
] as const
const DELIVERIES = addressState({ status: oneOf(STATUSES.map(([name]) => name)) })

/** The latest deliveries of a webhook, filtered by status. */
export function DeliveryList({ webhook }: { readonly webhook: Webhook }) {
  const { api } = useSession()
  const { status } = DELIVERIES.value
  const path = `${pathOf(webhook)}/deliveries`
  const read = useLoad(
    (signal) => api.get<Listed<Delivery>>(path, { status, limit: LIST_LIMIT }, signal),
    [path, status],
    { everyMs: REFRESH_MS },
  )
  /** What was sent again, by id: the list has it once SQL does. */
  const [resent, setResent] = useState<ReadonlyMap<string, Delivery>>(new Map())
  const { problem, attempt } = useAttempt()
  const resend = (delivery: Delivery) =>
    attempt(async () => {
      const { delivery_id } = delivery
      const sent = await api.post<Delivery>(`${path}/${encodeURIComponent(delivery_id)}/resend`, {})
      setResent(new Map([...resent, [delivery_id, sent]]))
    })
  return (
    <section class="deliveries" aria-label="Deliveries">
      <search class="filters" aria-label="Filter deliveries">
        <Select label="Status" {...DELIVERIES.field('status')} options={STATUSES} />
        <Button class="small" icon="retry" text="Refresh" onClick={read.reload} />
      </search>
      <ProblemText text={problem} />
      <Loaded
        read={read}
        empty={
          <p class="hint quiet-note">
            {status === '' ? 'Nothing has been sent yet.' : 'No deliveries with this status.'}
          </p>
        }
      >
        {({ items, next_cursor }) => (
          <>
            <ul class="delivery-list">
              {items.map((delivery) => (
                <DeliveryItem
                  key={delivery.delivery_id}
                  delivery={newerOf(delivery, resent.get(delivery.delivery_id))}
                  resend={resend}
                />
              ))}
            </ul>
            {next_cursor && <p class="hint">Only the latest {LIST_LIMIT} are shown; the API and SQL list more.</p>}
          </>
        )}
      </Loaded>
    </section>
  )
}

/** A delivery as of the later of two attempts. */
function newerOf(listed: Delivery, sent: Delivery | undefined): Delivery {
  return sent === undefined || (sent.at ?? '') < (listed.at ?? '') ? listed : sent
}

interface ItemProps {
  readonly delivery: Delivery
  readonly resend: (delivery: Delivery) => Promise<void>
}

/** A delivery as of its latest attempt. */
function DeliveryItem({ delivery, resend }: ItemProps) {
  const { delivery_id, type, run_id, seq, status, attempt, http_status, duration_ms, response, at, next_at } = delivery
  const [isBusy, setBusy] = useState(false)
  const send = async () => {
    setBusy(true)
    await resend(delivery)
    setBusy(false)
  }
  return (
    <li>
      <Status name={status} text={status === 'failed' ? 'given up' : status} />
      <span class="delivery-what">
        <code>{type}</code>
        {run_id !== null && <a href={hrefOfRun(run_id)}>run …{run_id.slice(-8)}</a>}
        <CopyButton text={() => delivery_id} label="Copy delivery id" />
      </span>
      <span class="delivery-how hint">
        {attempt === 0 ? 'waiting for an earlier delivery of its run' : <>attempt {attempt}</>}
        {http_status !== null && <b>HTTP {http_status}</b>}
        {duration_ms !== null && <span>{duration(duration_ms)}</span>}
        {at !== null && <Ago at={at} />}
        {next_at !== null && <Ahead at={next_at} prefix="retry " />}
      </span>
      {seq !== TEST_SEQ && (
        <Button needs="admin" class="small" disabled={isBusy} text="Resend" onClick={() => void send()} />
      )}
      {response && <p class="delivery-answer hint">{response}</p>}
    </li>
  )
}
