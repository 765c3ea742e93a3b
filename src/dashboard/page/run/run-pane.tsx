import { useMemo, useRef, useState } from 'preact/hooks'
import { type ChatMessage, messagesIn, plainParts } from '../../../base/conventions/messages/messages.ts'
import { fieldOf } from '../../../base/conventions/payload.ts'
import { compact, count } from '../../../base/format.ts'
import { useSession } from '../context/session.ts'
import { useLoad } from '../data/loading.ts'
import { isLive, type Run } from '../data/records.ts'
import { isSaid, Transcript } from '../data/transcript.ts'
import { Json } from '../parts/code.tsx'
import { openTab, Tabs } from '../parts/controls.tsx'
import { Empty, Facts, Problem, Skeleton } from '../parts/states.tsx'
import { Moment } from '../parts/time.tsx'
import type { Bar } from './bars.ts'
import { Conversation, Message, Reported, TranscriptEntries } from './conversation.tsx'
import { Decisions } from './decisions.tsx'
import { EventsPanel } from './events-panel.tsx'
import { LongText, Raw, Value } from './long-text.tsx'
import type { RunModel } from './run-model.ts'
import { ScoresPanel } from './score-list.tsx'
import { type Answer, type Thread, type Turn, threadsOf } from './threads.ts'

const CONTENT_FIRST = { conversation: 'Conversation', events: 'Events', scores: 'Scores', data: 'Details' }
const EVENTS_FIRST = { events: 'Events', conversation: 'Conversation', scores: 'Scores', data: 'Details' }

interface RunPaneProps {
  readonly model: RunModel
  readonly run: Run
}

/** A run in tabs: its input, conversation and output; its events; and everything else that is known of it. */
export function RunPane({ model, run }: RunPaneProps) {
  const { events } = model.log
  const hasContent = useHasContent(model, run)
  // A run that has reported only events opens with the tab of events.
  const tabs = hasContent ? CONTENT_FIRST : EVENTS_FIRST
  const tab = openTab({ name: 'tab', tabs })
  return (
    <>
      <Tabs
        label="Parts of the run"
        name="tab"
        tabs={tabs}
        badge={{
          events: compact(events.isLoaded.value ? events.value.length : run.event_count),
          ...(model.scores.value.size > 0 && { scores: compact(model.scores.value.size) }),
        }}
      />
      {tab === 'events' && <EventsPanel model={model} run={run} />}
      {tab === 'conversation' && <RunContent model={model} run={run} />}
      {tab === 'scores' && <ScoresPanel model={model} />}
      {tab === 'data' && <RunData run={run} />}
    </>
  )
}

/** Decided once, when everything is loaded, so that the tab does not change while the user reads. */
function useHasContent(model: RunModel, run: Run): boolean {
  const decided = useRef<boolean | null>(null)
  if (decided.current !== null) return decided.current
  const hasContent = isGiven(run.input) || isGiven(run.output) || threadsOf(model.rows.value).length > 0
  if (model.isLoaded.value) decided.current = hasContent
  return hasContent || !model.isLoaded.value
}

function isGiven(value: unknown): boolean {
  return value !== null && value !== undefined && JSON.stringify(value) !== '{}'
}

function RunContent({ model, run }: RunPaneProps) {
  const { directory } = useSession()
  const bars = model.rows.value
  const threads = useMemo(() => threadsOf(bars), [bars])
  const isHosted = directory.find(run.agent_id)?.runtime_type === 'hosted'
  return (
    <div class="run-content">
      <Decisions run={run} bars={bars} />
      {threads.length > 0 ? (
        <ThreadsBetween threads={threads} run={run} bars={bars} />
      ) : isHosted ? (
        <HostedConversation run={run} bars={bars} />
      ) : (
        <InputAndOutput model={model} run={run} />
      )}
    </div>
  )
}

interface ThreadsProps {
  readonly threads: readonly Thread[]
  readonly run: Run
  readonly bars: readonly Bar[]
}

/** The conversations between input and output; these two are left out where a message repeats them. */
function ThreadsBetween({ threads, run, bars }: ThreadsProps) {
  const turns = useMemo(() => threads.flatMap((thread) => thread.turns), [threads])
  const titles = useMemo(() => titlesOf(threads, bars), [threads, bars])
  const said = useMemo(() => textsOf(turns), [turns])
  return (
    <>
      {isGiven(run.input) && !isIn(said, run.input) && <Input run={run} />}
      <Conversation messages={turns} titles={titles} />
      {isGiven(run.output) && !isIn(said, run.output) && <Output run={run} />}
    </>
  )
}

function Input({ run }: { readonly run: Run }) {
  return <Reported title="Input" value={run.input} from="user" level="h2" />
}

function Output({ run }: { readonly run: Run }) {
  return <Reported title="Output" value={run.output} from="assistant" level="h2" />
}

/** Headings where a conversation of another step begins: the name of the step. */
function titlesOf(threads: readonly Thread[], bars: readonly Bar[]): ReadonlyMap<Turn, string> {
  const byId = new Map(bars.map((bar) => [bar.id, bar]))
  const titles = new Map<Turn, string>()
  let last: string | undefined
  for (const { stepId, turns } of threads) {
    const parent = byId.get(byId.get(stepId)?.parentId ?? '')
    const [first] = turns
    if (parent !== undefined && parent.id !== last && first !== undefined && threads.length > 1) {
      titles.set(first, parent.name)
    }
    last = parent?.id
  }
  return titles
}

function textsOf(messages: readonly ChatMessage[]): ReadonlySet<string> {
  return new Set(
    messages.flatMap(({ parts }) => parts.flatMap((part) => (part.type === 'text' ? [part.text.trim()] : []))),
  )
}

/** Whether the conversation contains all texts of a value. */
function isIn(said: ReadonlySet<string>, value: unknown): boolean {
  const texts = textsOf(messagesIn(value, 'user') ?? [{ role: 'user', parts: plainParts(value) }])
  return texts.size > 0 && texts.isSubsetOf(said)
}

interface HostedProps {
  readonly run: Run
  readonly bars: readonly Bar[]
}

function HostedConversation({ run, bars }: HostedProps) {
  const { api } = useSession()
  const [transcript, setTranscript] = useState<Transcript | null>(null)
  const { run_id: runId } = run
  // It is not followed again when the run ends: by then, the transcript has everything.
  const { problem } = useLoad(
    (signal) => {
      const next = new Transcript()
      setTranscript(next)
      return next.follow(api, runId, signal)
    },
    [runId],
  )
  const entries = transcript?.entries.value ?? []
  const answers = useMemo(() => answersByStep(bars), [bars])
  if (problem !== null) return <Problem problem={problem} />
  const isRepeated = entries.some(({ type }) => type === 'text') && isSaid(run.output)
  return (
    <>
      <ol class="conversation" aria-label="Conversation" aria-live={isLive(run) ? 'polite' : undefined}>
        <InputMessage value={run.input} />
        <TranscriptEntries entries={entries} answers={answers} />
      </ol>
      {isGiven(run.output) && !isRepeated && <Output run={run} />}
    </>
  )
}

/** Model calls of the service itself name the step of the run that they were. */
function answersByStep(bars: readonly Bar[]): ReadonlyMap<string, Answer> {
  return new Map(
    bars.flatMap(({ id, kind, usage, events, startMs, endMs }) => {
      const step = fieldOf(events.at(-1)?.payload, 'step')
      if (kind !== 'model' || usage === undefined || step === undefined) return []
      return [[`text ${step}`, { stepId: id, usage, durationMs: (endMs ?? startMs) - startMs }]]
    }),
  )
}

function InputMessage({ value }: { readonly value: unknown }) {
  const parts = plainParts(value)
  const [part] = parts
  if (part === undefined) return null
  return (
    <Message from="user">
      {part.type === 'text' ? <LongText text={part.text} /> : <Json title="Input" value={value} level="h4" />}
    </Message>
  )
}

function InputAndOutput({ model, run }: RunPaneProps) {
  if (!isGiven(run.input) && !isGiven(run.output)) {
    if (!model.isLoaded.value) return <Skeleton />
    const isUnsent = run.metadata.source === 'openai-agents' && model.rows.value.some(({ kind }) => kind === 'model')
    const title = isUnsent
      ? 'Input and output are unknown: the OpenAI Agents SDK does not send them for the Responses API.'
      : 'This run has reported no conversation, input or output.'
    return <Empty title={title} icon="sessions" />
  }
  return (
    <>
      {isGiven(run.input) && <Input run={run} />}
      {isGiven(run.output) && <Output run={run} />}
      {!isGiven(run.output) && <p class="hint">{isLive(run) ? 'No output yet.' : 'No output reported.'}</p>}
    </>
  )
}

function RunData({ run }: { readonly run: Run }) {
  return (
    <div class="run-data">
      <Facts
        facts={[
          ['Started', run.started_at && <Moment key="started" at={run.started_at} />],
          ['Ended', run.completed_at && <Moment key="ended" at={run.completed_at} />],
          ['Events', count(run.event_count)],
          ['Trigger', run.trigger_type],
          ['External id', run.external_run_id && <code>{run.external_run_id}</code>],
        ]}
      />
      {isGiven(run.error_detail) && <Value title="Error detail" value={run.error_detail} level="h2" />}
      {isGiven(run.metadata) && <Value title="Metadata" value={run.metadata} level="h2" />}
      <Value title="Input" value={run.input} level="h2" />
      {run.output !== null && <Value title="Output" value={run.output} level="h2" />}
      <Raw title="The run as JSON" value={run} />
    </div>
  )
}
