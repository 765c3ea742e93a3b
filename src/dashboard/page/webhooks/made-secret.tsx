import type { NewWebhook, Webhook } from '../data/webhooks.ts'
import { Button } from '../parts/controls.tsx'
import { Command } from '../parts/hints.tsx'
import { verifyCode } from './verify-code.ts'

/** The secret of a webhook that was just created or rotated, which is shown once, and how a receiver uses it. */
export function MadeSecret({ made, close }: { readonly made: NewWebhook; readonly close: () => void }) {
  const { secret, public_key } = made
  return (
    <section class="made-key" aria-label="The new secret" role="status">
      <div class="detail-head">
        <h3>{secret === null ? 'The public key' : 'The secret'}</h3>
        <span class="hint">
          {secret === null ? 'It can be read on this page at any time.' : 'Copy it now: it is not shown again.'}
        </span>
        <Button icon="close" label="Close" onClick={close} />
      </div>
      <Command label={secret === null ? 'The public key' : 'The secret'} text={secret ?? public_key ?? ''} />
      <VerifyHelp webhook={made} />
    </section>
  )
}

/** How a receiver verifies deliveries. */
export function VerifyHelp({ webhook }: { readonly webhook: Webhook }) {
  return (
    <details>
      <summary>Verify deliveries in the receiver</summary>
      <Command label="Verify a delivery" text={verifyCode(webhook)} />
    </details>
  )
}
