import type { Clock } from '../../base/clock.ts'
import type { Client } from '../../client/index.ts'
import { pickProfile } from './fleet.ts'
import { Desk, isWaiting } from './hosted/desk.ts'
import { type Conversation, easyConversation, heldConversation } from './hosted/requests.ts'
import { type RunPlan, timelineOf } from './plan.ts'
import type { Company, Member } from './provision.ts'
import { createRandom, type Random } from './random.ts'
import { httpSender } from './senders/http-sender.ts'
import { otlpSender } from './senders/otlp-sender.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
const NEVER_MS = Number.POSITIVE_INFINITY

/** A clock that stands still until it is moved, and shows the real time once it is released. */
export class HistoryClock implements Clock {
  private at: number | undefined

  constructor(startsAt: number) {
    this.at = startsAt
  }

  now(): number {
    return this.at ?? Date.now()
  }

  /** Moves the clock, never back. @param at Unix milliseconds */
  moveTo(at: number): void {
    if (this.at !== undefined) this.at = Math.max(this.at, Math.round(at))
  }

  /** Moves the clock by this time at once; waits for it if the clock is released. */
  async pass(ms: number): Promise<void> {
    if (this.at === undefined) await Bun.sleep(ms)
    else this.at += ms
  }

  release(): void {
    this.at = undefined
  }
}

const CALLS_AT_ONCE = 24

/** Calls that need not happen at a certain moment of the past: several run at once. */
class Calls {
  private readonly live = new Set<Promise<unknown>>()
  private failure: unknown

  readonly add = (call: () => Promise<unknown>): void => {
    const made = call()
      .catch((error: unknown) => {
        this.failure ??= error
      })
      .finally(() => this.live.delete(made))
    this.live.add(made)
  }

  /** Waits until at most this many are in progress. @throws the first error of any of them */
  async downTo(number: number): Promise<void> {
    while (this.live.size > number) await Promise.race(this.live)
    if (this.failure !== undefined) throw this.failure
  }
}

/** @param now what the clock shows: the moment of the work, or later where a hosted run has moved the clock meanwhile */
type Work = (now: number) => Promise<unknown>

/** Work at moments of the past, done in their order. Work may add more work. */
class Agenda {
  readonly calls = new Calls()
  private readonly entries: { readonly at: number; readonly work: Work }[] = []

  add(at: number, work: Work): void {
    const index = this.entries.findLastIndex((entry) => entry.at <= at)
    this.entries.splice(index + 1, 0, { at, work })
  }

  /** Does the work that is due before `until`, and no other. */
  async run(clock: HistoryClock, until: number, stop: AbortSignal): Promise<void> {
    for (;;) {
      const next = this.entries.shift()
      if (next === undefined || next.at >= until || stop.aborted) return this.calls.downTo(0)
      clock.moveTo(next.at)
      await next.work(clock.now())
      await this.calls.downTo(CALLS_AT_ONCE)
    }
  }
}

/** Episodes per hour on the last day, the day before, and so on: the shop grows. */
const PER_HOUR = [6, 4, 1.5, 1]
/** Load at each hour of the day, relative to the average. */
const BUSY = [
  0.2, 0.1, 0.1, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 1.9, 2.0, 1.8, 1.4, 1.6, 1.8, 1.7, 1.5, 1.3, 1.2, 1.2, 1.0, 0.7, 0.4,
  0.3,
]
/** Conversations with hosted agents per hour of the last day. */
const HOSTED_PER_HOUR = 1
/** Ages of the runs that still wait, in minutes. */
const WAITING_MINUTES = [1_590, 205, 96, 47, 18, 7, 2]
/** When the agents get their next versions, as shares of the period. */
const EDITS_AT = [0.55, 0.9]

interface HistoryOptions {
  readonly days: number
  readonly seed: number
  readonly clock: HistoryClock
  readonly stop: AbortSignal
}

/** Fills a service, whose clock the demo moves, with the runs of the days before. */
export async function writeHistory(company: Company, client: Client, options: HistoryOptions): Promise<void> {
  const { days, clock, stop, seed } = options
  const until = Date.now()
  const from = until - days * DAY_MS
  const random = createRandom(seed)
  const agenda = new Agenda()
  for (const at of startsOf(from, until, random)) {
    const profile = pickProfile(random)
    const member = company.members.get(profile.name)
    if (member !== undefined) addEpisode(agenda, company, { member, plans: profile.episode(random), at, random })
  }
  for (const edits of company.edits.splice(0))
    for (const [index, edit] of edits.entries()) agenda.add(from + (until - from) * (EDITS_AT[index] ?? 1), edit)
  addConversations(agenda, new Desk({ client, agents: company.hosted, random }), { from, until, random, clock })
  await agenda.run(clock, until, stop)
}

function startsOf(from: number, until: number, random: Random): number[] {
  const starts: number[] = []
  for (let hour = from; hour < until; hour += HOUR_MS) {
    const daysAgo = Math.floor((until - hour - 1) / DAY_MS)
    const mean = (PER_HOUR[daysAgo] ?? 1) * (BUSY[new Date(hour).getHours()] ?? 1)
    const number = Math.max(1, Math.floor(mean + random.next()))
    for (let i = 0; i < number; i++) starts.push(Math.round(hour + random.next() * HOUR_MS))
  }
  return starts
}

interface PastEpisode {
  readonly member: Member
  readonly plans: readonly RunPlan[]
  readonly at: number
  readonly random: Random
}

function addEpisode(agenda: Agenda, company: Company, { member, plans, at, random }: PastEpisode): void {
  let startsAt = at
  for (const plan of plans) {
    addRun(agenda, company, { member, plan, at: startsAt, parentRunId: undefined })
    startsAt += timelineOf(plan).endsAt + random.latencyMs(90_000)
  }
}

interface PastRun {
  readonly member: Member
  readonly plan: RunPlan
  readonly at: number
  readonly parentRunId: string | undefined
}

/** Adds the start of a run and, at its end, everything else: reports carry their own times. */
function addRun(agenda: Agenda, company: Company, { member, plan, at, parentRunId }: PastRun): void {
  const { profile, client, agentId } = member
  const { add: later } = agenda.calls
  const isTraced = profile.sender === 'otlp'
  const sender = isTraced ? otlpSender(client, profile.name, NEVER_MS) : httpSender(client, agentId, { later })
  agenda.add(at, async (startedAt) => {
    const run = await sender.start(plan, parentRunId, startedAt)
    const { moments, endsAt } = timelineOf(plan)
    for (const moment of moments) {
      const child = moment.kind === 'child' ? company.members.get(moment.to) : undefined
      if (moment.kind === 'child' && child !== undefined)
        addRun(agenda, company, { member: child, plan: moment.plan, at: startedAt + moment.at, parentRunId: run.runId })
    }
    agenda.add(startedAt + endsAt, async (endedAt) => {
      for (const moment of moments) if (moment.kind !== 'child') await run.add(moment, startedAt + moment.at)
      if (isTraced) later(() => run.end(plan.outcome, endedAt) as Promise<unknown>)
      else await run.end(plan.outcome, endedAt)
    })
  })
}

interface DeskTimes {
  readonly from: number
  readonly until: number
  readonly random: Random
  readonly clock: HistoryClock
}

function addConversations(agenda: Agenda, desk: Desk, { from, until, random, clock }: DeskTimes): void {
  const day = Math.max(from, until - DAY_MS)
  const hours = (until - day) / HOUR_MS
  for (let i = 0; i < hours * HOSTED_PER_HOUR; i++) {
    const conversation = random.chance(0.6) ? heldConversation(random) : easyConversation(random)
    addTurn(agenda, desk, {
      conversation,
      turn: 0,
      sessionId: undefined,
      at: day + random.next() * (until - day),
      random,
      clock,
    })
  }
  for (const [index, minutes] of WAITING_MINUTES.entries()) {
    const conversation = heldConversation(random, index)
    agenda.add(until - minutes * MINUTE_MS, () => desk.say(conversation, conversation.messages[0] ?? '', undefined))
  }
}

interface PastTurn {
  readonly conversation: Conversation
  readonly turn: number
  readonly sessionId: string | undefined
  readonly at: number
  readonly random: Random
  readonly clock: HistoryClock
}

/** A message to a hosted agent, the decisions that its run waits for, and then the next message. */
function addTurn(agenda: Agenda, desk: Desk, past: PastTurn): void {
  const { conversation, turn, sessionId, at, random, clock } = past
  const message = conversation.messages[turn]
  if (message === undefined) return
  const goOn = (outcome: Awaited<ReturnType<Desk['say']>>) => {
    if (isWaiting(outcome)) {
      const delayMs = random.latencyMs(9 * MINUTE_MS)
      agenda.add(clock.now() + delayMs, async () => goOn(await desk.decide(outcome)))
    } else if ('session_id' in outcome && outcome.session_id !== null) {
      const next = clock.now() + random.latencyMs(2 * MINUTE_MS)
      addTurn(agenda, desk, { ...past, turn: turn + 1, sessionId: outcome.session_id, at: next })
    }
  }
  agenda.add(at, async () => goOn(await desk.say(conversation, message, sessionId)))
}
