import { useState } from 'preact/hooks'
import { duration } from '../../../base/format.ts'
import { hrefOf, navigate } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { useAttempt } from '../data/loading.ts'
import { type Delivery, type NewWebhook, pathOf, type Webhook, webhookName } from '../data/webhooks.ts'
import { ConfirmButton } from '../parts/confirm.tsx'
import { Button, Dialog } from '../parts/controls.tsx'
import { TextField } from '../parts/fields.tsx'
import { Form, useForm } from '../parts/form.tsx'
import { Scrollable } from '../parts/scrollable.tsx'
import { ProblemText, Status } from '../parts/states.tsx'
import { fieldOf, timeOfField, zoneName } from '../parts/time.tsx'

export interface ActionProps {
  readonly webhook: Webhook
  /** Shows a new secret. */
  readonly setMade: (made: NewWebhook | null) => void
  /** Reads the webhooks again. */
  readonly reload: () => void
}

/** What can be done with a webhook. */
export function WebhookActions({ webhook, setMade, reload }: ActionProps) {
  const { api } = useSession()
  const [isRecovering, setRecovering] = useState(false)
  const [isTesting, setTesting] = useState(false)
  const [tested, setTested] = useState<Delivery | null>(null)
  const { problem, attempt } = useAttempt()
  const path = pathOf(webhook)
  const isDisabled = webhook.status === 'disabled'
  const test = async () => {
    setTesting(true)
    setTested(null)
    await attempt(async () => setTested(await api.post<Delivery>(`${path}/test`, {})))
    reload()
    setTesting(false)
  }
  const toggle = () =>
    attempt(async () => {
      await api.patch(path, { status: isDisabled ? 'active' : 'disabled' })
      reload()
    })
  const rotate = async () => {
    setMade(await api.post<NewWebhook>(`${path}/rotate`, {}))
    reload()
  }
  const remove = async () => {
    await api.delete(path, webhook.version)
    reload()
    navigate(hrefOf('webhooks'))
  }
  return (
    <>
      <div class="head-actions">
        <Button
          needs="admin"
          class="small"
          icon="play"
          disabled={isTesting}
          text={isTesting ? 'Sending…' : 'Send a test'}
          onClick={() => void test()}
        />
        <Button needs="admin" class="small" text="Recover…" onClick={() => setRecovering(true)} />
        <Button
          needs="admin"
          class="small"
          icon={isDisabled ? 'play' : 'pause'}
          text={isDisabled ? 'Enable' : 'Disable'}
          onClick={() => void toggle()}
        />
        <ConfirmButton text="Rotate…" title="Rotate the secret?" action="Rotate" isSafe act={rotate}>
          <p>
            The webhook gets a new {webhook.signing === 'v1' ? 'secret' : 'pair of keys'}. For 24 hours, deliveries are
            signed with the old one, too, so that you can update the receiver without losing any.
          </p>
        </ConfirmButton>
        <ConfirmButton
          text="Delete…"
          title={`Delete "${webhookName(webhook)}"?`}
          action="Delete the webhook"
          act={remove}
        >
          <p>
            Nothing more is sent, and failed deliveries are not retried. Alerts no longer reach this receiver. Past
            deliveries stay in SQL.
          </p>
        </ConfirmButton>
      </div>
      <ProblemText text={problem} />
      {tested !== null && <TestOutcome outcome={tested} close={() => setTested(null)} />}
      {isRecovering && <RecoverDialog webhook={webhook} reload={reload} close={() => setRecovering(false)} />}
    </>
  )
}

/** How the receiver answered a test. */
function TestOutcome({ outcome, close }: { readonly outcome: Delivery; readonly close: () => void }) {
  const { status, http_status, duration_ms, response } = outcome
  return (
    <div class="test-outcome" role="status">
      <Status name={status} text={status === 'succeeded' ? 'arrived' : 'failed'} />
      <span>
        {http_status !== null && <b>HTTP {http_status}</b>} in {duration(duration_ms)}
      </span>
      <Button icon="close" label="Close" onClick={close} />
      {response && (
        <Scrollable as="pre" label="Response">
          {response}
        </Scrollable>
      )}
    </div>
  )
}

const DAY_MS = 86_400_000

interface RecoverProps extends Omit<ActionProps, 'setMade'> {
  readonly close: () => void
}

/** Delivers everything since a time again. */
function RecoverDialog({ webhook, reload, close }: RecoverProps) {
  const { api } = useSession()
  const form = useForm(() => ({ since: fieldOf(new Date(Date.now() - DAY_MS).toISOString()) }))
  const recover = async () => {
    const since = new Date(timeOfField(form.draft.since)).toISOString()
    await api.post(`${pathOf(webhook)}/recover`, { since })
    reload()
    close()
  }
  return (
    <Dialog title="Deliver earlier activity again" close={close}>
      <Form form={form} submit={recover} action="Deliver again" foot={<Button text="Cancel" onClick={close} />}>
        <p>
          Everything since this time that the webhook selects is sent again, with the same ids, so that the receiver can
          skip what it already has. New activity is delivered meanwhile.
        </p>
        <TextField {...form.field('since')} label="Since" hint={zoneName()} type="datetime-local" required />
      </Form>
    </Dialog>
  )
}
