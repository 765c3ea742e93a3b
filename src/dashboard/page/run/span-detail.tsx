import { useMemo } from 'preact/hooks'
import { count, dollars, duration } from '../../../base/format.ts'
import { TOOL } from '../../../conventions/names.ts'
import { hrefOfRun, setQuery } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { Json } from '../parts/code.tsx'
import { Facts } from '../parts/facts.tsx'
import { Icon } from '../parts/icons.tsx'
import { useNow } from '../parts/now.ts'
import { Status } from '../parts/status.tsx'
import { ClockTime } from '../parts/time.tsx'
import { Conversation } from './conversation.tsx'
import { messagesOf } from './messages.ts'
import { finishReasonOf, firstOf } from './payload.ts'
import type { Span } from './spans.ts'
import { KIND_ICONS } from './waterfall.tsx'

/** What is known of one step: a model call as a conversation, a tool call with arguments and result, a task, a wait. */
export function SpanDetail({ span, agentId }: { readonly span: Span; readonly agentId: string }) {
  const { directory } = useSession()
  const isHosted = directory.find(agentId)?.runtime_type === 'hosted'
  return (
    <section class="panel detail" aria-label="Selected step">
      <div class="detail-head">
        <Icon name={KIND_ICONS[span.kind]} />
        <h2>{span.name}</h2>
        <Status name={span.status} />
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
      <SpanFacts span={span} />
      {span.task?.error_message && <p class="problem">{span.task.error_message}</p>}
      {span.run && (
        <p>
          <a class="button small" href={hrefOfRun(span.run.run_id)}>
            Open the child run
          </a>
        </p>
      )}
      <SpanBody span={span} isHosted={isHosted} />
    </section>
  )
}

function SpanFacts({ span }: { readonly span: Span }) {
  const now = useNow()
  const { usage } = span
  const facts: readonly (readonly [string, preact.ComponentChildren])[] = [
    ['Started', <ClockTime key="start" at={new Date(span.startMs).toISOString()} />],
    ['Duration', duration((span.endMs ?? now) - span.startMs)],
    ['Model', usage?.model],
    [
      'Tokens',
      usage && usage.inputTokens + usage.outputTokens > 0
        ? `${count(usage.inputTokens)} in, ${count(usage.outputTokens)} out`
        : null,
    ],
    ['Cost', usage && usage.costUsd > 0 ? dollars(usage.costUsd) : null],
    ['Finish reason', span.kind === 'model' ? finishReasonOf(span.events.at(-1)?.payload) : null],
  ]
  return <Facts facts={facts} />
}

function SpanBody({ span, isHosted }: { readonly span: Span; readonly isHosted: boolean }) {
  const payload = span.events.at(-1)?.payload
  const messages = useMemo(() => (span.kind === 'model' ? messagesOf(payload) : []), [span.kind, payload])
  if (messages.length > 0) {
    return (
      <>
        <Conversation messages={messages} />
        <Reported payload={payload} />
      </>
    )
  }
  if (span.kind === 'model' && isHosted) {
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
  if (span.kind === 'tool' && span.task === undefined) return <ToolBody span={span} />
  return (
    <>
      {span.task && (
        <>
          {span.task.input !== null && <Json title="Input" value={span.task.input} />}
          {span.task.output !== null && <Json title="Output" value={span.task.output} />}
        </>
      )}
      {span.events.map((event) => (
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

function ToolBody({ span }: { readonly span: Span }) {
  const [first] = span.events
  const last = span.events.at(-1)
  const input = firstOf(first?.payload, TOOL.arguments) ?? firstOf(last?.payload, TOOL.arguments)
  const output = firstOf(last?.payload, TOOL.result)
  return (
    <>
      {input !== undefined && <Json title="Arguments" value={input} isExact />}
      {output !== undefined && <Json title="Result" value={output} />}
      <details open={input === undefined && output === undefined}>
        <summary>Everything reported</summary>
        {span.events.map((event) => (
          <Json key={event.seq} title={event.type} value={event.payload} />
        ))}
      </details>
    </>
  )
}
