import { createLog } from '../../src/base/log.ts'
import type { Activity } from '../../src/feeds/live/activity.ts'
import type { Subscription } from '../../src/feeds/live/channel.ts'
import { type Outlet, packetsOf } from '../../src/feeds/live/packet.ts'
import type { Outcome } from '../../src/feeds/webhooks/delivery/attempt.ts'
import type { AttemptResults, RetryRow, RowKey } from '../../src/feeds/webhooks/delivery/attempt-results.ts'
import { Endpoint, type Place } from '../../src/feeds/webhooks/delivery/endpoint.ts'
import { Slots } from '../../src/feeds/webhooks/delivery/slots.ts'
import type { Message } from '../../src/feeds/webhooks/message.ts'
import type { StoredWebhook } from '../../src/feeds/webhooks/schema.ts'

/** A step of the simulation. Numbers choose among what is possible. */
export type Step =
  | { readonly do: 'read' | 'answer' | 'store' | 'tick' | 'load' | 'save'; readonly pick: number }
  | { readonly do: 'crash' | 'move' | 'recover'; readonly pick: number }

export interface WorldOptions {
  readonly isStrict: boolean
  readonly rowsMax: number
  readonly items: number
  readonly runs: number
  /** How the receiver answers, by turns: succeeds, fails, answers after the time-out, breaks the connection. */
  readonly answers: readonly ('ok' | 'error' | 'late' | 'overload')[]
  /** Rows whose position is a multiple of it cannot be stored. */
  readonly refusedEvery: number
}

const WEBHOOK = 'w'
/** So many that no delivery is given up. */
const SCHEDULE = { delaysMs: Array.from({ length: 10_000 }, () => 1_500), disableAfterMs: Number.POSITIVE_INFINITY }
const log = createLog('error')

interface Pending {
  readonly epoch: number
  readonly run: () => void
}

/** One endpoint with everything around it: the log, the receiver, the stores and the clock, one step at a time. */
export class World {
  /** What the receiver has taken, in order; late answers included. */
  readonly taken: number[] = []
  /** What was given up because its row could not be stored. */
  readonly givenUp = new Set<number>()
  private now = 0
  private life = 0
  private readonly log: Activity[]
  private readonly attempts: Pending[] = []
  private readonly stores: Pending[] = []
  private readonly subscribers = new Map<Subscription, { outlet: Outlet; at: number; isFull: boolean }>()
  private answered = 0
  // What survives a crash.
  private readonly rows = new Map<number, RetryRow>()
  private position = 0
  private recovery: { readonly position: number; readonly until: number } | undefined
  private readonly succeeded = new Set<number>()
  // What does not.
  private endpoint!: Endpoint
  private reading: Parameters<Endpoint['addDue']> | undefined
  private storeFailures = 0

  constructor(private readonly options: WorldOptions) {
    const { items, runs } = options
    this.log = Array.from({ length: items }, (_, i) => ({
      seq: i + 1,
      kind: 'event',
      text: `run ${i % 7 === 0 ? 0 : i % runs}`,
      endsRun: false,
      isRecount: i % 11 === 10,
    }))
    this.start()
  }

  /** Positions that have to be delivered. */
  get wanted(): number[] {
    return this.log.filter(({ isRecount }) => !isRecount).map(({ seq }) => seq)
  }

  runOf(seq: number): string {
    return this.log[seq - 1].text
  }

  async step({ do: what, pick }: Step): Promise<void> {
    if (what === 'read') this.read(pick)
    else if (what === 'answer') this.runOne(this.attempts, pick)
    else if (what === 'store') this.runOne(this.stores, pick)
    else if (what === 'tick') this.tick(pick % 2_000)
    else if (what === 'load') this.load()
    else if (what === 'save') this.save()
    else if (what === 'recover') this.recover(pick)
    else await this.restart(what === 'move')
    await settle()
  }

  /** Everything works from now on. @throws Error when something remains undone */
  async drain(): Promise<void> {
    this.answered = Number.NEGATIVE_INFINITY
    for (let round = 0; round < 4_000; round++) {
      for (const what of ['read', 'answer', 'store', 'load', 'save'] as const) await this.step({ do: what, pick: 0 })
      await this.step({ do: 'tick', pick: 1_000 })
      const isOver = this.rows.size === 0 && this.position === this.log.length && this.recovery === undefined
      if (isOver && this.attempts.length === 0 && this.stores.length === 0) return
    }
    throw new Error(`undone: position ${this.position}, rows ${[...this.rows.keys()]}, taken ${this.taken}`)
  }

  private start(): void {
    // As `Retries.keys` does.
    for (const ofRun of Map.groupBy(this.rows.values(), ({ seq, runId }) => runId ?? seq).values())
      if (ofRun.every(({ nextAt }) => nextAt === null)) this.makeDue(Math.min(...ofRun.map(({ seq }) => seq)))
    const life = ++this.life
    const { isStrict, rowsMax } = this.options
    const webhook = {
      ...{ webhook_id: WEBHOOK, workspace_id: 'workspace', version: 1, epoch: 'e', filter: null },
      ...{
        ordering: isStrict ? 'strict' : 'run',
        failing_since: null,
        failing_ms: 0,
        succeeded_at: null,
        failed_at: null,
      },
    } as unknown as StoredWebhook
    this.endpoint = new Endpoint(
      {
        ...{ rowsMax, log },
        attempt: (message, _at, signal) => this.attempt(message, signal, life),
        messagesOf: async (activities) => activities.map(messageOf),
        store: (results) => this.store(results, life),
        gather: () => Promise.resolve(),
        schedule: SCHEDULE,
        slots: new Slots(),
        clock: { now: () => this.now },
        random: () => 0.5,
        onAttempt: () => {},
        queueLengthMax: () => 100,
        wake: () => {},
      },
      webhook,
      this.place(),
      { rows: this.rows.values(), afterSeq: this.position },
    )
  }

  private place(): Place {
    const hub = {
      subscribe: ({ outlet, afterSeq: at }: { outlet: Outlet; afterSeq: number }) => {
        const subscription = { outlet } as Subscription
        this.subscribers.set(subscription, { outlet, at, isFull: false })
        return subscription
      },
      unsubscribe: (subscription: Subscription) => void this.subscribers.delete(subscription),
      resume: (subscription: Subscription) => {
        const subscriber = this.subscribers.get(subscription)
        if (subscriber !== undefined) subscriber.isFull = false
      },
      positionOf: (subscription: Subscription) => this.subscribers.get(subscription)!.at,
    }
    const source = { hub, journal: { endSeq: this.log.length }, retain: () => () => {} }
    return { source, owned: {} } as unknown as Place
  }

  private read(pick: number): void {
    for (const subscriber of this.subscribers.values()) {
      if (subscriber.isFull || subscriber.at >= this.log.length) continue
      const items = this.log.slice(subscriber.at, subscriber.at + 1 + (pick % 9))
      const [packet] = packetsOf('e', items)
      if (subscriber.outlet.send(packet)) subscriber.at = packet.lastSeq
      else subscriber.isFull = true
    }
  }

  private attempt(message: Message, signal: AbortSignal, life: number): Promise<Outcome> {
    const { answers } = this.options
    const answer = answers[this.answered++] ?? 'ok'
    if (this.answered >= answers.length) this.answered = 0
    return new Promise((resolve, reject) => {
      const run = () => {
        if (signal.aborted) return reject(signal.reason)
        if (answer === 'ok' || answer === 'late') this.taken.push(message.seq)
        if (answer === 'ok') this.succeeded.add(message.seq)
        const httpStatus = { ok: 200, error: 500, late: null, overload: 429 }[answer]
        resolve({ isSuccess: answer === 'ok', httpStatus, durationMs: 1, response: null, retryAfterMs: 0 })
      }
      signal.addEventListener('abort', () => reject(signal.reason))
      this.attempts.push({ epoch: life, run })
    })
  }

  /** Sometimes it fails before it has stored anything, and sometimes after. */
  private store(results: AttemptResults, life: number): Promise<readonly RowKey[]> {
    const failure = this.answered < 0 ? 0 : this.storeFailures++ % 6
    return new Promise((resolve, reject) => {
      const run = () => {
        if (failure === 2) return reject(new Error('not stored'))
        const refused = results.rows.filter(({ seq }) => seq % this.options.refusedEvery === 0)
        const rows = results.rows.filter((row) => !refused.includes(row))
        for (const { seq } of refused) this.givenUp.add(seq)
        this.apply({ rows, gone: [...results.gone, ...refused] })
        if (failure === 4) return reject(new Error('stored'))
        resolve(refused)
      }
      this.stores.push({ epoch: life, run })
    })
  }

  /** As `Retries.write` does. */
  private apply({ rows, gone }: Pick<AttemptResults, 'rows' | 'gone'>): void {
    for (const row of rows) if (!this.rows.has(row.seq) || row.attempt > 0) this.rows.set(row.seq, row)
    for (const { seq, runId } of gone) {
      if (!this.rows.delete(seq)) continue
      const rest = [...this.rows.values()].filter(
        (row) => row.runId === runId && !gone.some((each) => each.seq === row.seq),
      )
      if (rest.length > 0) this.makeDue(Math.min(...rest.map((row) => row.seq)))
    }
    if (this.rows.size > this.options.rowsMax) throw new Error('too many rows')
  }

  private makeDue(seq: number): void {
    const row = this.rows.get(seq)
    if (row?.nextAt === null) this.rows.set(seq, { ...row, nextAt: this.now })
  }

  private tick(ms: number): void {
    this.now += ms
    const { position = null, until = null } = this.recovery ?? {}
    this.endpoint.tick({ recover_position: position, recover_until: until })
  }

  /** What has been read is taken a step later: meanwhile the rows may change. */
  private load(): void {
    if (this.reading !== undefined) {
      this.endpoint.addDue(...this.reading)
      this.reading = undefined
      return
    }
    const { room, loaded } = this.endpoint.dueRequest()
    const due = [...this.rows.values()].filter(
      ({ seq, nextAt }) => nextAt !== null && nextAt <= this.now && !loaded.includes(seq),
    )
    if (room > 0) this.reading = [due.slice(0, room), due.length > room]
  }

  private save(): void {
    const progress = this.endpoint.progress()
    const { position } = progress
    if (position < this.position) throw new Error(`the position decreases from ${this.position} to ${position}`)
    this.position = position
    for (const seq of this.wanted)
      if (seq <= position && !this.succeeded.has(seq) && !this.rows.has(seq) && !this.givenUp.has(seq))
        throw new Error(`${seq} is neither delivered nor stored, but the position is ${position}`)
    this.endpoint.stored(progress, this.now)
    // As `storeProgress` does.
    const { recovery } = progress
    if (recovery?.from !== this.recovery?.position || recovery?.until !== this.recovery?.until) return
    if (recovery !== null && recovery.position < recovery.until)
      this.recovery = { position: recovery.position, until: recovery.until }
    else this.recovery = undefined
  }

  private recover(pick: number): void {
    if (this.recovery !== undefined || this.position === 0) return
    this.recovery = { position: pick % this.position, until: this.position }
  }

  /** @param isOrderly whether the process hands over; otherwise it ends, and some of what it was storing is stored */
  private async restart(isOrderly: boolean): Promise<void> {
    if (isOrderly) {
      const stopped = this.endpoint.stop(0)
      await settle()
      while (this.stores.length > 0) this.runOne(this.stores, 0)
      await stopped
      this.save()
    } else this.runOne(this.stores, 1)
    this.reading = undefined
    this.subscribers.clear()
    this.attempts.splice(0)
    this.stores.splice(0)
    this.start()
  }

  private runOne(pending: Pending[], pick: number): void {
    if (pending.length === 0) return
    const [next] = pending.splice(pick % pending.length, 1)
    if (next.epoch === this.life) next.run()
  }
}

function messageOf({ seq, text }: Activity): Message {
  const runId = text === 'run 0' ? null : text
  return { deliveryId: `msg_${seq}`, type: 'event', seq, runId, timestamp: '', body: 'x'.repeat(5) }
}

/** Lets everything run that can. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
