import { useMemo } from 'preact/hooks'
import { count, dollars, duration } from '../../../base/format.ts'
import { TOOL } from '../../../conventions/names.ts'
import { hrefOfRun, setQuery } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { Json } from '../parts/code.tsx'
import { Icon } from '../parts/controls.tsx'
import { Facts, Status } from '../parts/states.tsx'
import { ClockTime, useNow } from '../parts/time.tsx'
import type { Bar } from './bars.ts'
import { Conversation } from './conversation.tsx'
import { messagesOf } from './messages.ts'
import { finishReasonOf, firstOf } from './payload.ts'
import { KIND_ICONS } from './waterfall.tsx'

/** What is known of one step: a model call as a conversation, a tool call with arguments and result, a task, a wait. */
export function BarDetail({ bar, agentId }: { readonly bar: Bar; readonly agentId: string }) {
  const { directory } = useSession()
  const isHosted = directory.find(agentId)?.runtime_type === 'hosted'
  return (
    <section class="panel detail" aria-label="Selected step">
      <div class="detail-head">
        <Icon name={KIND_ICONS[bar.kind]} />
        <h2>{bar.name}</h2>
        <Status name={bar.status} />
        <button
          type="button"
          class="icon-only"
          aria-label="Close the step"
          title="Close (Esc)"
          onClick={() => setQuery({ span: null })}
        >
          <Icon name="close" />
        </button>
      </div>
      <BarFacts bar={bar} />
      {bar.task?.error_message && <p class="problem">{bar.task.error_message}</p>}
      {bar.run && (
        <p>
          <a class="button small" href={hrefOfRun(bar.run.run_id)}>
            Open the child run
          </a>
        </p>
      )}
      <BarBody bar={bar} isHosted={isHosted} />
    </section>
  )
}

function BarFacts({ bar }: { readonly bar: Bar }) {
  const now = useNow()
  const { usage } = bar
  const facts: readonly (readonly [string, preact.ComponentChildren])[] = [
    ['Started', <ClockTime key="start" at={new Date(bar.startMs).toISOString()} />],
    ['Duration', duration((bar.endMs ?? now) - bar.startMs)],
    ['Model', usage?.model],
    [
      'Tokens',
      usage && usage.inputTokens + usage.outputTokens > 0
        ? `${count(usage.inputTokens)} in, ${count(usage.outputTokens)} out`
        : null,
    ],
    ['Cost', usage && usage.costUsd > 0 ? dollars(usage.costUsd) : null],
    ['Finish reason', bar.kind === 'model' ? finishReasonOf(bar.events.at(-1)?.payload) : null],
  ]
  return <Facts facts={facts} />
}

function BarBody({ bar, isHosted }: { readonly bar: Bar; readonly isHosted: boolean }) {
  const payload = bar.events.at(-1)?.payload
  const messages = useMemo(() => (bar.kind === 'model' ? messagesOf(payload) : []), [bar.kind, payload])
  if (messages.length > 0) {
    return (
      <>
        <Conversation messages={messages} />
        <Reported payload={payload} />
      </>
    )
  }
  if (bar.kind === 'model' && isHosted) {
    return (
      <>
        <p class="hint">The events of hosted runs have no messages; the conversation of the run does.</p>
        <p>
          <button type="button" class="small" onClick={() => setQuery({ span: null, tab: 'conversation' })}>
            <Icon name="sessions" />
            <span>Open the conversation</span>
          </button>
        </p>
        <Reported payload={payload} />
      </>
    )
  }
  if (bar.kind === 'tool' && bar.task === undefined) return <ToolBody bar={bar} />
  return (
    <>
      {bar.task && (
        <>
          {bar.task.input !== null && <Json title="Input" value={bar.task.input} />}
          {bar.task.output !== null && <Json title="Output" value={bar.task.output} />}
        </>
      )}
      {bar.events.map((event) => (
        <Json key={event.seq} title={event.type} value={event.payload} />
      ))}
    </>
  )
}

function Reported({ payload }: { readonly payload: unknown }) {
  return (
    <details>
      <summary>Everything reported</summary>
      <Json title="Payload" value={payload} />
    </details>
  )
}

function ToolBody({ bar }: { readonly bar: Bar }) {
  const [first] = bar.events
  const last = bar.events.at(-1)
  const input = firstOf(first?.payload, TOOL.arguments) ?? firstOf(last?.payload, TOOL.arguments)
  const output = firstOf(last?.payload, TOOL.result)
  return (
    <>
      {input !== undefined && <Json title="Arguments" value={input} isExact />}
      {output !== undefined && <Json title="Result" value={output} />}
      <details open={input === undefined && output === undefined}>
        <summary>Everything reported</summary>
        {bar.events.map((event) => (
          <Json key={event.seq} title={event.type} value={event.payload} />
        ))}
      </details>
    </>
  )
}
