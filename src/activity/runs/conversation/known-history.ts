import { t } from 'elysia'
import { beginningOf, continued, saidSince } from '../../../base/conventions/messages/history.ts'
import type { ChatPart, ToolResult } from '../../../base/conventions/messages/message-parts.ts'
import type { Chat, ChatMessage } from '../../../base/conventions/messages/messages.ts'

const THREADS_MAX = 16
const CALLS_MAX = 32

const Hash = t.Integer({ minimum: 0, maximum: 2 ** 32 - 1 })
const Count = t.Integer({ minimum: 0, maximum: 1_000_000 })

/** What is known of the events up to a position, as a cursor has it. */
export const KnownHistory = t.Object({
  /** Conversations: their beginning, how many messages the last call was sent, whether it was answered, their first `seq`. */
  threads: t.Array(t.Tuple([Hash, Count, t.Boolean(), t.Integer({ minimum: 0 })]), { maxItems: THREADS_MAX }),
  /** Calls of tools without a result: id and name. */
  open: t.Array(t.Tuple([Hash, Hash]), { maxItems: CALLS_MAX }),
  /** Ids of calls whose results were reported by an event, and not yet repeated by a message. */
  reported: t.Array(Hash, { maxItems: CALLS_MAX }),
})
export type KnownHistory = typeof KnownHistory.static

/** New messages of an event. */
interface Said {
  readonly thread: number | null
  readonly input: readonly ChatMessage[]
  readonly output: readonly ChatMessage[]
}

/** A call of a tool that an event reports. */
interface ReportedCall {
  readonly id: string | null
  readonly name: string
}

/**
 * Tells what is new in each event of a run. Of many conversations and calls only the latest are known, so that a cursor can
 * have them all: messages of a forgotten one are listed again.
 */
export class History {
  private threads: KnownHistory['threads']
  private open: KnownHistory['open']
  private reported: KnownHistory['reported']

  constructor({ threads, open, reported }: KnownHistory) {
    this.threads = [...threads]
    this.open = [...open]
    this.reported = [...reported]
  }

  get known(): KnownHistory {
    return { threads: [...this.threads], open: [...this.open], reported: [...this.reported] }
  }

  /** What a call of a model adds: its answer, and what it was sent that no earlier call was. */
  ofModel({ input, output }: Chat, seq: number): Said {
    const key = hashOf(beginningOf(input))
    const conversations = this.threads.map((thread) => ({ key: thread[0], inputCount: thread[1], thread }))
    const before = continued(conversations, key, input)?.thread
    const thread = before?.[3] ?? seq
    const added = before === undefined ? input : saidSince(input, before[1], before[2])
    const now: KnownHistory['threads'][number] = [key, input.length, output.length > 0, thread]
    const rest = this.threads.filter((each) => each !== before)
    this.threads = [...rest, now].slice(-THREADS_MAX)
    const said = { thread, input: added.flatMap((message) => this.unreported(message)), output }
    for (const { parts } of output) for (const part of parts) this.ask(part)
    return said
  }

  /** @returns whether the call is new: no message has asked for it */
  begin({ id, name }: ReportedCall): boolean {
    if (this.find(id, name) !== -1) return false
    this.ask({ type: 'call', id, name, input: undefined })
    return true
  }

  /** @returns whether the call that has ended is new */
  end({ id, name }: ReportedCall): boolean {
    const at = this.find(id, name)
    const [asked] = at === -1 ? [] : this.open.splice(at, 1)
    this.reported = [...this.reported, asked?.[0] ?? hashOf(id ?? name)].slice(-CALLS_MAX)
    return asked === undefined
  }

  private find(id: string | null, name: string): number {
    const named = hashOf(name)
    if (id === null) return this.open.findIndex((call) => call[1] === named)
    const at = this.open.findIndex((call) => call[0] === hashOf(id))
    // The message that asked for it may have no ids.
    return at !== -1 ? at : this.open.findIndex((call) => call[0] === named && call[1] === named)
  }

  /** The message without the results that events have reported. */
  private unreported(message: ChatMessage): ChatMessage[] {
    const parts = message.parts.filter((part) => {
      this.ask(part)
      return part.type !== 'result' || !this.isReported(part)
    })
    return parts.length === 0 ? [] : [{ role: message.role, parts }]
  }

  private isReported({ id }: ToolResult): boolean {
    const hash = id === null ? this.open[0]?.[0] : hashOf(id)
    const at = hash === undefined ? -1 : this.reported.indexOf(hash)
    if (at !== -1) this.reported.splice(at, 1)
    this.open = this.open.filter((call) => call[0] !== hash)
    return at !== -1
  }

  private ask(part: ChatPart): void {
    if (part.type !== 'call') return
    const call: KnownHistory['open'][number] = [hashOf(part.id ?? part.name), hashOf(part.name)]
    this.open = [...this.open, call].slice(-CALLS_MAX)
  }
}

function hashOf(text: string): number {
  return Bun.hash.crc32(text)
}
