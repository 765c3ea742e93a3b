import { encodeCursor, parseCursor } from '../../src/stores/journal/cursor.ts'
import type { Random } from '../support/random.ts'
import { openEventStream, openWebSocket, type RawFeed, type RawWebSocket } from '../support/raw-feeds.ts'
import { type Fact, shows, type Wanted } from './live-model.ts'
import type { Rig } from './live-rig.ts'

/** Where a feed starts. */
export type Start =
  | { readonly at: 'now' }
  /** A position of this journal, as a cursor or a number. */
  | { readonly at: 'position'; readonly seq: number; readonly text: string }
  /** Past the end of this journal: the feed starts now, with a gap. */
  | { readonly at: 'future'; readonly text: string }
  /** In another journal: the feed starts at the beginning of this one, after a gap. */
  | { readonly at: 'elsewhere'; readonly text: string }

export interface WatchOptions {
  /** The subscription's id. */
  readonly name: string
  readonly workspaceId: string
  readonly wanted: Wanted
  readonly start: Start
  /** Resumes at the cursor that the service sends when it closes, not after the last item. */
  readonly usesClosingCursor: boolean
  /** Called for every violation. */
  readonly onViolation: (fault: string) => void
}

/**
 * One logical watcher: a filter followed from its start over any number of connections, over either protocol, each
 * resuming where the last one ended.
 */
export class Watch {
  readonly received: number[] = []
  /** Its feed started after a position within these: an event stream does not report its start. */
  private earliest = 0
  private latest = 0
  private gaps = 0
  /** Where to resume; undefined until known. */
  private cursor: string | undefined

  constructor(readonly options: WatchOptions) {}

  /** The cursor to send, if any. */
  ask({ journal }: Rig): string | undefined {
    const { start } = this.options
    if (this.cursor !== undefined) return this.cursor
    this.earliest = start.at === 'position' ? start.seq : start.at === 'elsewhere' ? 0 : journal.endSeq
    this.latest = this.earliest
    return start.at === 'now' ? undefined : start.text
  }

  /** The service has answered: everything acknowledged from now on comes after the start. */
  opened({ journal }: Rig): void {
    const { at } = this.options.start
    if (at === 'now' || at === 'future') this.latest = journal.endSeq
  }

  /** A WebSocket reports where a subscription starts. */
  subscribed(rig: Rig, message: { readonly cursor: string; readonly recovered: boolean }): void {
    const { at } = this.options.start
    if (this.cursor !== undefined) {
      if (this.cursor !== message.cursor || !message.recovered) this.violation(`resumed at ${message.cursor}`)
      return
    }
    this.opened(rig)
    this.startsAt(message.cursor)
    if (message.recovered !== (at === 'position')) this.violation(`recovered: ${message.recovered}`)
    if (at === 'now' || at === 'position') this.cursor = message.cursor
  }

  gap(rig: Rig, resumedAt: string): void {
    this.gaps++
    this.opened(rig)
    this.startsAt(resumedAt)
    if (this.received.length > 0) this.violation('a gap in the middle')
    this.cursor = resumedAt
  }

  got(cursor: string): void {
    this.received.push(positionOf(cursor))
    this.cursor = cursor
  }

  /** The service is closing and reports where to resume. */
  closing(cursor: string): void {
    if (positionOf(cursor) < (this.received.at(-1) ?? 0)) this.violation(`asked to resume at ${cursor}`)
    if (this.options.usesClosingCursor && this.cursor !== undefined) this.cursor = cursor
  }

  /** Every position that this watcher must have received. */
  expected(facts: readonly Fact[]): number[] {
    const { workspaceId, wanted } = this.options
    const first = this.received[0] ?? Number.POSITIVE_INFINITY
    const start = Math.max(this.earliest, Math.min(this.latest, first - 1))
    return facts
      .filter((fact) => fact.seq > start && fact.workspaceId === workspaceId && shows(wanted, fact))
      .map(({ seq }) => seq)
  }

  /** Whether a loss was reported once, and only if there was one. */
  get gapsAreRight(): boolean {
    const { at } = this.options.start
    return this.gaps === (at === 'future' || at === 'elsewhere' ? 1 : 0)
  }

  private startsAt(cursor: string): void {
    const seq = positionOf(cursor)
    if (seq < this.earliest || seq > this.latest)
      this.violation(`starts at ${seq}, not within ${this.earliest} and ${this.latest}`)
    this.earliest = this.latest = seq
  }

  private violation(fault: string): void {
    const { name, start, onViolation } = this.options
    onViolation(`${name}, started at ${JSON.stringify(start)}: ${fault}`)
  }
}

/** A connection and its watchers, all of one workspace. */
export interface Link {
  readonly watches: readonly Watch[]
  readonly feed: RawFeed
  isPaused: boolean
  /** Absent for an event stream. */
  readonly socket?: {
    /** Resolves once everything sent by the service so far has arrived. */
    settled(): Promise<void>
    /** Ends all subscriptions, but not the connection. */
    unsubscribe(): void
  }
}

/** @param url one of the rig's */
export async function openSocketLink(rig: Rig, url: string, watches: readonly Watch[]): Promise<Link> {
  const byName = new Map(watches.map((watch) => [watch.options.name, watch]))
  let pongs = 0
  const feed: RawWebSocket = await openWebSocket({ url, headers: [headerOf(watches[0])] }, '/live', (text) => {
    const message = JSON.parse(text)
    if (message.op === 'pong') pongs++
    else if (message.op === 'closing') {
      for (const [name, cursor] of Object.entries<string>(message.cursors ?? {})) byName.get(name)?.closing(cursor)
    } else {
      const watch = byName.get(message.id)
      if (message.op === 'subscribed') watch?.subscribed(rig, message)
      else if (message.op === 'gap') watch?.gap(rig, message.resumed_at)
      else if (message.op === 'activity') for (const item of message.items) watch?.got(item.cursor)
      else watches[0].options.onViolation(text)
    }
  })
  for (const watch of watches) {
    const after = watch.ask(rig)
    const { name, wanted } = watch.options
    feed.send({ op: 'subscribe', id: name, filter: wanted, ...(after !== undefined && { after }) })
  }
  let pings = 0
  const socket = {
    async settled() {
      const own = ++pings
      feed.send({ op: 'ping' })
      while (pongs < own && !feed.isClosed) await Bun.sleep(1)
    },
    unsubscribe() {
      for (const { options } of watches) feed.send({ op: 'unsubscribe', id: options.name })
    },
  }
  return { watches, feed, isPaused: false, socket }
}

/**
 * @param url one of the rig's
 * @param inHeader whether the cursor goes into `Last-Event-ID` or into the query
 */
export async function openStreamLink(rig: Rig, url: string, watch: Watch, inHeader: boolean): Promise<Link> {
  const query = new URLSearchParams()
  for (const [name, values] of Object.entries(watch.options.wanted))
    for (const value of [values].flat() as string[]) query.append(name, value)
  const headers = [headerOf(watch)]
  const after = watch.ask(rig)
  if (after !== undefined && inHeader) headers.push(`Last-Event-ID: ${after}`)
  else if (after !== undefined) query.set('after', after)
  const feed = await openEventStream({ url, headers }, `/stream?${query}`, ({ id, event }) => {
    if (event === 'gap') watch.gap(rig, id)
    else watch.got(id)
  })
  if (after === undefined) watch.opened(rig)
  return { watches: [watch], feed, isPaused: false }
}

function headerOf({ options }: Watch): string {
  return `Workspace: ${options.workspaceId}`
}

function positionOf(cursor: string): number {
  const position = parseCursor(cursor)
  if (position === null) throw new Error(`no cursor: ${cursor}`)
  return position.seq
}

/** Any way to ask for a start. */
export function randomStart({ journal }: Rig, random: Random): Start {
  const kind = random.next()
  if (kind < 0.35) return { at: 'now' }
  if (kind < 0.5) return { at: 'position', seq: 0, text: '0' }
  if (kind < 0.55) return { at: 'future', text: `${journal.endSeq + 1_000_000}` }
  if (kind < 0.6) return { at: 'elsewhere', text: encodeCursor('0123456789ab', random.int(1, 1_000)) }
  const seq = random.int(0, journal.endSeq)
  return { at: 'position', seq, text: random.bool() ? `${seq}` : encodeCursor(journal.epoch, seq) }
}
