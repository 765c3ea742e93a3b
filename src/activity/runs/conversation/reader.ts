import { t } from 'elysia'
import { type ChatPart, parsed } from '../../../base/conventions/messages/message-parts.ts'
import {
  type Chat,
  type ChatMessage,
  chatInSteps,
  eventInSteps,
  messagesInSteps,
  plainParts,
} from '../../../base/conventions/messages/messages.ts'
import { TOOL } from '../../../base/conventions/names.ts'
import { errorOf, fieldOf, firstOf, modelOf, toolNameOf } from '../../../base/conventions/payload.ts'
import { hasMoreValues } from '../../../base/http/json-scan.ts'
import { cursorCodec, PAGE_LIMIT_DEFAULT } from '../../../base/http/page.ts'
import { inSlices, type SharedSlice, type Slice } from '../../../base/http/shared-slice.ts'
import type { RunRef } from '../../../base/ids.ts'
import { parseIntact } from '../../../base/intact-json.ts'
import { EMPTY_OBJECT, type RawJson } from '../../../base/raw-json.ts'
import { SEQ_MAX } from '../../../stores/journal/cursor.ts'
import type { Caller } from '../../../tenants/keys/schema.ts'
import { type LoadedDeps, queryLoaded } from '../events.ts'
import type { RunRecord } from '../schema.ts'
import type { RunStore } from '../store.ts'
import { History, KnownHistory } from './known-history.ts'
import type { ConversationMessage, ConversationPage, ReadConversation } from './schema.ts'
import { PartsOnWire } from './wire.ts'

interface ConversationDeps extends LoadedDeps {
  readonly runs: Pick<RunStore, 'find' | 'get'>
  readonly slice: Pick<SharedSlice, 'of'>
}

/** Payloads that are read for a page; each call of a model repeats the conversation. */
const READ_BYTES_MAX = 4 << 20
/** A longer payload, or one of more values, is not parsed: that could stop the event loop. */
const PAYLOAD_BYTES_MAX = 1 << 20
const PAYLOAD_VALUES_MAX = 20_000
/** A page ends with the message that makes it longer than this. */
const PAGE_LENGTH_MAX = 1 << 20
/** Messages that are events of their own. */
const MESSAGE_EVENTS_MAX = 500

const CURSOR = cursorCodec(
  t.Object({
    /** The last event of which all messages were listed; 0 after the input of the run, and -1 before it. */
    after: t.Integer({ minimum: -1, maximum: SEQ_MAX }),
    /** How many messages of the next one were listed. */
    skip: t.Integer({ minimum: 0, maximum: 1_000_000 }),
    /** Whether the input was listed, so that the output is, too. */
    isPlain: t.Boolean(),
    known: KnownHistory,
  }),
)
type Position = ReturnType<typeof CURSOR.decode>
const BEGINNING = { after: -1, skip: 0, known: { threads: [], open: [], reported: [] } }

const TYPES = ['llm.call', 'tool.call.started', 'tool.call.finished']

interface EventRow {
  readonly event_id: string
  readonly seq: number
  readonly task_id: string | null
  readonly type: string
  readonly level: string
  /** Empty if it is too long. */
  readonly payload: string
  readonly occurred_ms: number
  readonly found: number
}

interface ReadEvent extends EventRow {
  /** The payload; undefined if it is not read. */
  readonly value: unknown
  /** Of a call of a model. */
  readonly chat: Chat
}

/** A message, and where it is from. */
interface Sourced {
  readonly message: ChatMessage
  readonly event: ReadEvent | null
  readonly thread: number | null
  readonly model: string | null
  readonly at: string | null
  readonly isTruncated: boolean
}

/** Messages that are listed together: those of an event, or of the input or output of the run. */
interface Source {
  readonly seq: number
  readonly messages: () => readonly Sourced[]
}

/** The messages of a run, in whichever format they were reported (docs/runs.md#conversations). */
export class ConversationReader {
  constructor(private readonly deps: ConversationDeps) {}

  /**
   * A page: what the next events add. It reads no more events than messages are asked for, so it may be shorter, or empty.
   * @throws ApiError NOT_FOUND, FORBIDDEN, VALIDATION_ERROR for an invalid cursor, UNAVAILABLE
   */
  async list(caller: Caller, runId: string, query: ReadConversation): Promise<ConversationPage> {
    const { cursor, limit = PAGE_LIMIT_DEFAULT } = query
    const run = await this.deps.runs.find(caller, runId)
    const from = cursor === undefined ? null : CURSOR.decode(cursor)
    const { after, skip, known } = from ?? BEGINNING
    const slice = this.deps.slice.of(caller.workspaceId)
    const events = await this.read(caller, run, Math.max(0, after), limit, slice)
    const isEnd = (events.at(-1)?.found ?? 0) <= events.length
    // Such as a hosted run: its events say which tools it called, but not what was said.
    const isPlain = from?.isPlain ?? events.every(({ chat }) => isEmpty(chat))
    const record = isPlain && (after === -1 || isEnd) ? await this.deps.runs.get(caller, runId) : null
    const history = new History(known)
    const sources: Source[] = events.map((event) => ({ seq: event.seq, messages: () => saidIn(event, history) }))
    if (record !== null && after === -1) sources.unshift(await sourceOf(0, inputOf(record), slice))
    if (record !== null && isEnd) sources.push(await sourceOf(SEQ_MAX, outputOf(record), slice))
    return inPage(sources, history, { start: { after, skip, isPlain, known }, limit, isEnd, slice })
  }

  /** The next events, parsed. */
  private async read(caller: Caller, run: RunRef, after: number, limit: number, slice: Slice): Promise<ReadEvent[]> {
    const sql = `
      select * except (bytes_before) from (
        select *, count() over () as found,
          sum(length(payload)) over (order by seq rows between unbounded preceding and 1 preceding) as bytes_before
        from (
          select event_id, seq, task_id, type, level, if(length(payload) > {most:UInt64}, '', payload) as payload,
            toUnixTimestamp64Milli(occurred_at) as occurred_ms
          from events
          where workspace_id = {workspace:UUID} and agent_id = {agent:UUID} and run_id = {run:UUID}
            and seq > {after:UInt64} and type in {types:Array(String)}
          order by seq limit {limit:UInt32}
        )
      )
      where bytes_before < {bytes:UInt64}
      order by seq limit {limit:UInt32} - 1`
    const { workspaceId: workspace, agentId: agent, runId } = run
    const scope = { workspace, agent, run: runId, most: PAYLOAD_BYTES_MAX, bytes: READ_BYTES_MAX }
    const params = { ...scope, after, types: TYPES, limit: limit + 1 }
    const rows = await queryLoaded<EventRow>(this.deps, caller, 'the conversation', sql, params)
    const events: ReadEvent[] = []
    for (const row of rows) events.push(await readEvent(row, slice))
    return this.withMessageEvents(caller, run, events, slice)
  }

  /** OpenTelemetry may report the messages of a model call as events of its span, before that of the call. */
  private async withMessageEvents(caller: Caller, run: RunRef, events: readonly ReadEvent[], slice: Slice) {
    const tasks = new Set(
      events.flatMap(({ type, chat, task_id }) => (type === 'llm.call' && isEmpty(chat) ? (task_id ?? []) : [])),
    )
    if (tasks.size === 0) return [...events]
    const sql = `
      select task_id, type, payload from (
        select task_id, type, payload, seq,
          sum(length(payload)) over (order by seq rows between unbounded preceding and 1 preceding) as bytes_before
        from events
        where workspace_id = {workspace:UUID} and agent_id = {agent:UUID} and run_id = {run:UUID}
          and task_id in {tasks:Array(UUID)} and startsWith(type, 'gen_ai.') and length(payload) <= {most:UInt64}
        order by seq limit {limit:UInt32}
      )
      where bytes_before < {bytes:UInt64} order by seq`
    const { workspaceId: workspace, agentId: agent, runId } = run
    const scope = { workspace, agent, run: runId, most: PAYLOAD_BYTES_MAX, bytes: READ_BYTES_MAX }
    const params = { ...scope, tasks: [...tasks], limit: MESSAGE_EVENTS_MAX }
    const rows = await queryLoaded<EventRow>(this.deps, caller, 'the conversation', sql, params)
    const said = new Map<string, { input: ChatMessage[]; output: ChatMessage[] }>()
    for (const { task_id, type, payload } of rows) {
      if (slice.isOver) await slice.yield()
      if (task_id === null || hasMoreValues(payload, PAYLOAD_VALUES_MAX)) continue
      const { input, output } = await inSlices(slice, eventInSteps({ type, payload: parseIntact(payload) }))
      const known = said.get(task_id) ?? { input: [], output: [] }
      known.input.push(...input)
      known.output.push(...output)
      said.set(task_id, known)
    }
    return events.map((event) =>
      event.type === 'llm.call' && isEmpty(event.chat)
        ? { ...event, chat: said.get(event.task_id ?? '') ?? event.chat }
        : event,
    )
  }
}

const NO_CHAT: Chat = { input: [], output: [] }

function isEmpty({ input, output }: Chat): boolean {
  return input.length + output.length === 0
}

async function readEvent(row: EventRow, slice: Slice): Promise<ReadEvent> {
  if (slice.isOver) await slice.yield()
  if (row.payload === '' || hasMoreValues(row.payload, PAYLOAD_VALUES_MAX))
    return { ...row, value: undefined, chat: NO_CHAT }
  const value = parseIntact(row.payload)
  const chat = row.type === 'llm.call' ? await inSlices(slice, chatInSteps(value)) : NO_CHAT
  return { ...row, value, chat }
}

/** What an event adds to the conversation. */
function saidIn(event: ReadEvent, history: History): Sourced[] {
  const at = new Date(event.occurred_ms).toISOString()
  const source = { event, at, thread: null, model: null, isTruncated: event.value === undefined }
  const tool = (parts: ChatPart[]): Sourced[] => [{ ...source, message: { role: 'tool', parts } }]
  if (event.type !== 'llm.call') {
    const parts = toolParts(event, history)
    return parts.length === 0 ? [] : tool(parts)
  }
  if (event.value === undefined) return [{ ...source, message: { role: 'assistant', parts: [] } }]
  if (isEmpty(event.chat)) return []
  const { thread, input, output } = history.ofModel(event.chat, event.seq)
  const model = modelOf(event.value)
  return [
    ...input.map((message) => ({ ...source, thread, message })),
    ...output.map((message) => ({ ...source, thread, model, message })),
  ]
}

/** A call that no message has asked for, and its result. */
function toolParts({ type, value, level }: ReadEvent, history: History): ChatPart[] {
  const given = firstOf(value, TOOL.callId)
  const id = typeof given === 'string' ? given : null
  const name = toolNameOf(value) ?? 'tool'
  const call: ChatPart = { type: 'call', id, name, input: parsed(firstOf(value, TOOL.arguments)) }
  if (type === 'tool.call.started') return history.begin({ id, name }) ? [call] : []
  const isNew = history.end({ id, name })
  const isFailed = level === 'error' || ['failed', 'rejected'].includes(String(fieldOf(value, 'status')))
  const result: ChatPart = {
    type: 'result',
    id,
    value: parsed(firstOf(value, TOOL.result) ?? errorOf(value) ?? undefined),
    ...(isFailed && { isFailed }),
  }
  return isNew ? [call, result] : [result]
}

/** The input or the output of a run. */
interface Content {
  readonly json: RawJson | null
  readonly role: string
  readonly at: string | null
}

function inputOf({ input, started_at, created_at }: RunRecord): Content {
  return { json: input, role: 'user', at: started_at ?? created_at }
}

function outputOf({ output, completed_at }: RunRecord): Content {
  return { json: output, role: 'assistant', at: completed_at }
}

async function sourceOf(seq: number, content: Content, slice: Slice): Promise<Source> {
  const said = await messagesOf(content, slice)
  return { seq, messages: () => said }
}

async function messagesOf({ json, role, at }: Content, slice: Slice): Promise<Sourced[]> {
  const source = { event: null, thread: null, model: null, at }
  const { text } = json ?? EMPTY_OBJECT
  if (text.length > PAYLOAD_BYTES_MAX || hasMoreValues(text, PAYLOAD_VALUES_MAX))
    return [{ ...source, isTruncated: true, message: { role, parts: [] } }]
  const value = parseIntact(text)
  const messages = (await inSlices(slice, messagesInSteps(value, role))) ?? [{ role, parts: plainParts(value) }]
  return messages.filter(({ parts }) => parts.length > 0).map((message) => ({ ...source, isTruncated: false, message }))
}

interface PageOptions {
  readonly start: Position
  readonly limit: number
  /** Whether there are no events after these. */
  readonly isEnd: boolean
  readonly slice: Slice
}

async function inPage(
  sources: readonly Source[],
  history: History,
  { start, limit, isEnd, slice }: PageOptions,
): Promise<ConversationPage> {
  const items: ConversationMessage[] = []
  let length = 0
  let position = start
  for (const { seq, messages } of sources) {
    const all = messages()
    for (let at = position.skip; at < all.length; at++) {
      if (items.length === limit || length > PAGE_LENGTH_MAX)
        return { items, next_cursor: CURSOR.encode({ ...position, skip: at }) }
      if (slice.isOver) await slice.yield()
      const parts = new PartsOnWire(all[at]!.message.parts)
      items.push(itemOf(all[at]!, parts))
      length += parts.length
    }
    position = { ...position, after: seq, skip: 0, known: history.known }
  }
  return { items, next_cursor: isEnd ? null : CURSOR.encode(position) }
}

function itemOf({ message, event, thread, model, at, isTruncated }: Sourced, wire: PartsOnWire): ConversationMessage {
  return {
    role: wire.name(message.role),
    parts: wire.parts,
    event_id: event?.event_id ?? null,
    seq: event?.seq ?? null,
    event_time: at,
    model: model === null ? null : wire.name(model),
    thread,
    truncated: isTruncated || wire.isTruncated,
  }
}
