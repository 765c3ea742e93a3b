import { useMemo } from 'preact/hooks'
import { count, dollars, duration } from '../../../base/format.ts'
import { TOOL } from '../../../conventions/names.ts'
import { hrefOfRun, setQuery } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { Button } from '../parts/button.tsx'
import { Json } from '../parts/code.tsx'
import { Facts } from '../parts/facts.tsx'
import { Icon } from '../parts/icons.tsx'
import { useNow } from '../parts/now.ts'
import { Status } from '../parts/status.tsx'
import { ClockTime } from '../parts/time.tsx'
import type { Bar } from './bars.ts'
import { Conversation } from './conversation.tsx'
import { messagesOf } from './messages.ts'
import { finishReasonOf, firstOf } from './payload.ts'
import { KINDS } from './waterfall.tsx'

/** What is known of one step: a model call as a conversation, a tool call with arguments and result, a task, a wait. */
export function BarDetail({ bar, agentId }: { readonly bar: Bar; readonly agentId: string }) {
  const { directory } = useSession()
  const isHosted = directory.find(agentId)?.runtime_type === 'hosted'
  return (
    <section class="panel detail" aria-label="Selected step">
      <div class="detail-head">
        <Icon name={KINDS[bar.kind].icon} />
        <h2>{bar.name}</h2>
        <Status name={bar.status} />
        <Button icon="close" label="Close the step" title="Close (Esc)" onClick={() => setQuery({ span: null })} />
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

function BarFacts({ bar: { kind, usage, startMs, endMs, events } }: { readonly bar: Bar }) {
  const now = useNow()
  const { model, inputTokens = 0, outputTokens = 0, costUsd = 0 } = usage ?? {}
  const facts: readonly (readonly [string, preact.ComponentChildren])[] = [
    ['Started', <ClockTime key="start" at={new Date(startMs).toISOString()} />],
    ['Duration', duration((endMs ?? now) - startMs)],
    ['Model', model],
    ['Tokens', inputTokens + outputTokens > 0 && `${count(inputTokens)} in, ${count(outputTokens)} out`],
    ['Cost', costUsd > 0 && dollars(costUsd)],
    ['Finish reason', kind === 'model' && finishReasonOf(events.at(-1)?.payload)],
  ]
  return <Facts facts={facts} />
}

function BarBody({ bar, isHosted }: { readonly bar: Bar; readonly isHosted: boolean }) {
  const { kind, task, events } = bar
  const payload = events.at(-1)?.payload
  const messages = useMemo(() => (kind === 'model' ? messagesOf(payload) : []), [kind, payload])
  if (messages.length > 0) {
    return (
      <>
        <Conversation messages={messages} />
        <Reported events={events.slice(-1)} />
      </>
    )
  }
  if (kind === 'model' && isHosted) {
    const open = () => setQuery({ span: null, tab: 'conversation' })
    return (
      <>
        <p class="hint">The events of hosted runs have no messages; the conversation of the run does.</p>
        <p>
          <Button class="small" icon="sessions" text="Open the conversation" onClick={open} />
        </p>
        <Reported events={events.slice(-1)} />
      </>
    )
  }
  if (kind === 'tool' && task === undefined) return <ToolBody events={events} />
  return (
    <>
      {task && task.input !== null && <Json title="Input" value={task.input} />}
      {task && task.output !== null && <Json title="Output" value={task.output} />}
      <Payloads events={events} />
    </>
  )
}

function ToolBody({ events }: Pick<Bar, 'events'>) {
  const [first, last] = [events[0]?.payload, events.at(-1)?.payload]
  const input = firstOf(first, TOOL.arguments) ?? firstOf(last, TOOL.arguments)
  const output = firstOf(last, TOOL.result)
  return (
    <>
      {input !== undefined && <Json title="Arguments" value={input} isExact />}
      {output !== undefined && <Json title="Result" value={output} />}
      <Reported events={events} isOpen={input === undefined && output === undefined} />
    </>
  )
}

function Reported({ events, isOpen = false }: Pick<Bar, 'events'> & { readonly isOpen?: boolean }) {
  return (
    <details open={isOpen}>
      <summary>Everything reported</summary>
      <Payloads events={events} />
    </details>
  )
}

function Payloads({ events }: Pick<Bar, 'events'>) {
  return events.map(({ seq, type, payload }) => <Json key={seq} title={type} value={payload} />)
}
