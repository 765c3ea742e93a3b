import { doors } from '../../../openapi/doors.ts'
import type { Schemas } from '../data/records.ts'
import { Button } from '../parts/controls.tsx'
import { Command } from '../parts/hints.tsx'
import { Ahead } from '../parts/time.tsx'

/** A key that was just created or rotated, with its text, which is shown once. */
export type NewKey = Schemas['Key'] & { readonly key: string }

/** A new key, and what to paste into programs so that they report with it. */
export function MadeKey({ made, close }: { readonly made: NewKey; readonly close: () => void }) {
  const { key, agent_id: agentId, expires_at } = made
  return (
    <section class="made-key" aria-label="New key">
      <div class="detail-head">
        <h3>Shown only now: copy it</h3>
        {expires_at !== null && <Ahead at={expires_at} prefix="expires " />}
        <Button icon="close" label="Close" onClick={close} />
      </div>
      <Command label="The key" text={key} />
      <p>Does your program use one of these already? Paste what fits, and it reports here.</p>
      {doors({ url: location.origin, key, agentId }).map(({ name, where, text }) => (
        <details key={name}>
          <summary>{name}</summary>
          <p class="hint">Put this {where}:</p>
          <Command label={name} text={text} />
        </details>
      ))}
      {agentId !== null && (
        <details>
          <summary>Plain HTTP</summary>
          <Command label="Start a run with it" text={startCommand(agentId)} />
        </details>
      )}
      <p class="hint">
        Guides for all of them: <a href="/llms.txt">/llms.txt</a>
      </p>
    </section>
  )
}

function startCommand(agentId: string): string {
  return `export AGENT_KEY=…   # the key above
curl ${location.origin}/api/ingest/v1/run/start \\
  -H "Authorization: Bearer $AGENT_KEY" -H 'Content-Type: application/json' \\
  -d '{"agent_id": "${agentId}"}'`
}
