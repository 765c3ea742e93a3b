import { useMemo } from 'preact/hooks'
import { answered } from '../../../base/conventions/messages/messages.ts'
import { errorOf, finishReasonOf, totalUsage } from '../../../base/conventions/payload.ts'
import { counted, dollars, duration } from '../../../base/format.ts'
import { hrefOfRun } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { isLive, type Run } from '../data/records.ts'
import { Button, Icon, Id } from '../parts/controls.tsx'
import { Facts, Status } from '../parts/states.tsx'
import { ClockTime, useNow } from '../parts/time.tsx'
import { NamedPauseCard } from '../waiting/pause-card.tsx'
import type { Bar, TreeBar } from './bars.ts'
import { Conversation, Reported } from './conversation.tsx'
import { pauseOf } from './decisions.tsx'
import { EventRow } from './events-panel.tsx'
import { KINDS } from './kinds.ts'
import { ErrorText, Raw, Value } from './long-text.tsx'
import type { RunModel } from './run-model.ts'
import { StepScores } from './score-list.tsx'
import { RUN, selectStep } from './step-address.ts'
import { tokensText } from './summary.ts'
import { callOfBar, chatOfBar } from './threads.ts'

interface StepPaneProps {
  readonly model: RunModel
  readonly run: Run
  readonly bar: TreeBar
}

/** What is known of one step: a model call as a conversation, a tool call with arguments and result, a task, a wait. */
export function StepPane({ model, run, bar }: StepPaneProps) {
  const error = bar.task?.error_message ?? bar.run?.error_message ?? errorOf(bar.events.at(-1)?.payload)
  return (
    <section class="step" aria-label="Selected step">
      <div class="detail-head">
        <span class={`kind-icon kind-${bar.kind}`}>
          <Icon name={KINDS[bar.kind].icon} />
        </span>
        <h2 tabIndex={-1}>{bar.name}</h2>
        <Status name={bar.status} />
        <span class="hint">{KINDS[bar.kind].name}</span>
        <Id id={bar.id} what="step id" />
        <Button icon="close" label="Close the step" title="Close (Esc)" onClick={() => selectStep(null)} />
      </div>
      <StepFacts model={model} run={run} bar={bar} />
      {error && <ErrorText text={error} />}
      {bar.run && (
        <p>
          <a class="button small" href={hrefOfRun(bar.run.run_id)}>
            Open the child run
          </a>
        </p>
      )}
      <StepBody bar={bar} run={run} />
      <StepScores bar={bar} />
      <StepEvents model={model} bar={bar} />
      <AsJson bar={bar} />
    </section>
  )
}

function StepFacts({ model, run, bar }: StepPaneProps) {
  const now = useNow()
  const { kind, startMs, endMs, events } = bar
  const usage = useMemo(() => usageBelow(model.rows.value, bar), [model.rows.value, bar])
  const payload = events.findLast(({ type }) => type === 'llm.call')?.payload
  const runStart = Date.parse(run.started_at ?? run.created_at)
  const facts: readonly (readonly [string, preact.ComponentChildren])[] = [
    ['Duration', duration((endMs ?? (isLive(run) ? now : startMs)) - startMs)],
    [
      'Started',
      <span key="start">
        <ClockTime at={new Date(startMs).toISOString()} />
        {startMs > runStart && <span class="hint"> · {duration(startMs - runStart)} into the run</span>}
      </span>,
    ],
    ['Model', usage.model],
    ['Tokens', tokensText(usage)],
    ['Cost', usage.costUsd > 0 && dollars(usage.costUsd)],
    ['Calls', usage.calls > 1 && counted(usage.calls, 'model call')],
    ['Finish reason', kind === 'model' && finishReasonOf(payload)],
  ]
  return <Facts facts={facts} />
}

/** What the calls of models in a step have used: its own, or all that are below it. */
function usageBelow(rows: readonly TreeBar[], bar: TreeBar) {
  const from = rows.findIndex(({ id }) => id === bar.id)
  const end = rows.findIndex(({ depth }, index) => index > from && depth <= bar.depth)
  const own = from === -1 ? [bar] : rows.slice(from, end === -1 ? rows.length : end)
  const usages = own.flatMap(({ usage }) => usage ?? [])
  return { ...totalUsage(usages), calls: usages.length }
}

function StepBody({ bar, run }: { readonly bar: Bar; readonly run: Run }) {
  const { kind, task } = bar
  if (kind === 'model') return <ModelBody bar={bar} run={run} />
  if (kind === 'tool') {
    const { input, output } = callOfBar(bar)
    return (
      <>
        {input !== undefined && <Value title="Arguments" value={input} isJson />}
        {output !== undefined && <Value title="Result" value={output} />}
      </>
    )
  }
  const pause = kind === 'wait' ? pauseOf(bar) : null
  // The run itself shows a decision that is pending.
  if (pause !== null && bar.status !== 'awaiting_input') return <NamedPauseCard {...pause} stamp={bar.status} />
  return <TaskValues task={task} />
}

function TaskValues({ task }: { readonly task: Bar['task'] }) {
  return (
    <>
      {task && task.input !== null && <Reported title="Input" value={task.input} from="user" />}
      {task && task.output !== null && <Reported title="Output" value={task.output} from="assistant" />}
    </>
  )
}

/** The messages of a model call; those of hosted runs are in the conversation of the run. */
function ModelBody({ bar, run }: { readonly bar: Bar; readonly run: Run }) {
  const { directory } = useSession()
  const turns = useMemo(() => {
    const { input, output } = chatOfBar(bar)
    return answered([...input, ...output])
  }, [bar])
  if (turns.length > 0) return <Conversation key={bar.id} messages={turns} />
  if (directory.find(run.agent_id)?.runtime_type !== 'hosted') return <TaskValues task={bar.task} />
  const open = () => RUN.set({ step: '', tab: 'conversation' })
  return (
    <>
      <p class="hint">The events of hosted runs have no messages; the conversation of the run does.</p>
      <p>
        <Button class="small" icon="sessions" text="Open the conversation" onClick={open} />
      </p>
    </>
  )
}

const EVENTS_SHOWN_MAX = 50

/** The events of the task that are not steps of their own. */
function StepEvents({ model: { log, rows }, bar }: Pick<StepPaneProps, 'model' | 'bar'>) {
  const steps = useMemo(() => new Set(rows.value.flatMap(({ events }) => events.map(({ seq }) => seq))), [rows.value])
  const all = log.events.value
  const own = useMemo(() => {
    return bar.task === undefined ? [] : all.filter(({ task_id, seq }) => task_id === bar.id && !steps.has(seq))
  }, [all, bar.id, bar.task, steps])
  log.payloadVersion.value
  if (own.length === 0) return null
  const shown = own.slice(0, EVENTS_SHOWN_MAX)
  return (
    <section class="step-events" aria-label="Events of the step">
      <h3>{counted(own.length, 'event')}</h3>
      {shown.map((event) => (
        <EventRow
          key={event.seq}
          event={event}
          payload={log.payloadOf(event)}
          onOpen={() => RUN.set({ step: '', tab: 'events', event: String(event.seq) })}
        />
      ))}
      {own.length > shown.length && <p class="hint">The first {EVENTS_SHOWN_MAX} are shown here.</p>}
    </section>
  )
}

/** Everything that was reported of the step, as JSON. */
function AsJson({ bar: { task, events, run } }: { readonly bar: Bar }) {
  return (
    <>
      {task !== undefined && <Raw title="The task as JSON" value={task} />}
      {run !== undefined && <Raw title="The child run as JSON" value={run} />}
      {events.map((event) => (
        <Raw key={event.seq} title={`The event ${event.type} as JSON`} value={event} />
      ))}
    </>
  )
}
