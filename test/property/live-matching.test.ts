import { describe, expect, test } from 'bun:test'
import { systemClock } from '../../src/base/clock.ts'
import { definedOf } from '../../src/base/defined.ts'
import { type RunRef, runKey } from '../../src/base/ids.ts'
import { createLog } from '../../src/base/log.ts'
import type { Activity } from '../../src/feeds/live/activity.ts'
import { TimeSlice } from '../../src/feeds/live/fair-share.ts'
import { type Filter, type FilterInput, parseFilter, withWorkspaceEvents } from '../../src/feeds/live/filter.ts'
import { Bits, FilterIndex } from '../../src/feeds/live/filter-index.ts'
import { MATCHES_MAX, WORK_PER_CHECK } from '../../src/feeds/live/matching.ts'
import type { RunSession } from '../../src/feeds/live/run-sessions.ts'
import type { Frame } from '../../src/stores/journal/journal.ts'
import { LEVELS } from '../../src/stores/journal/levels.ts'
import { openLocalJournal } from '../../src/stores/journal/local/journal.ts'
import { batchOf, runRef } from '../support/events.ts'
import { matchAll } from '../support/matching.ts'
import { type Random, seededRandom } from '../support/random.ts'
import { alertRow, deliveryRow, runRow, taskRow } from '../support/rows.ts'
import { scoreBatch } from '../support/scores.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'

/** Matching many filters in one pass: the same result as one by one, in bounded time slices. */

const TYPES = ['a', 'a.b', 'a.b.c', 'ab', 'b', 'Größe 📏', 'Größe 📐', '*x', '']
const STATUSES = ['running', 'completed', 'failed'] as const
const TAGS = ['eu', 'prod', '0']
const TASKS = [0, 1, 2].map(() => Bun.randomUUIDv7())
const SESSIONS = ['a chat', 'Größe 📏', '0']
const USERS = ['a person', '0']
const KINDS = ['event', 'task', 'run', 'score'] as const
const FIELDS = {
  event: ['type', 'level', 'task_id'],
  task: ['task_id', 'status'],
  run: ['status', 'tag'],
  score: ['task_id'],
}
const EVERYONE = { agentId: null, runId: null }

/** What is looked up; a row of a run itself may say otherwise, as an earlier one of a run that gets a session. */
interface Run extends RunRef {
  readonly session: RunSession
}

interface Fact {
  /** `alert`: a workspace event. */
  readonly kind: 'event' | 'task' | 'run' | 'score' | 'alert' | 'delivery'
  readonly run: Run
  readonly type?: string
  readonly level?: string
  readonly status?: string
  readonly tags?: readonly string[]
  readonly task?: string | undefined
  readonly session: RunSession
}

function randomSession(random: Random): RunSession {
  return {
    session_id: random.bool() ? random.pick(SESSIONS) : null,
    external_user_id: random.bool() ? random.pick(USERS) : null,
  }
}

async function newJournal() {
  const dir = await temporaryDirectory()
  const log = createLog('error')
  const journal = await openLocalJournal({ dir, maxBytes: 1 << 30, keepBytes: 1 << 30, clock: systemClock, log })
  atEnd(() => journal.close())
  return journal
}

function randomFact(random: Random, runs: readonly Run[]): Fact {
  const run = random.pick(runs)
  const kind = random.pick(['event', 'event', 'event', 'task', 'run', 'score', 'alert', 'delivery'] as const)
  const { session } = run
  if (kind === 'alert' || kind === 'delivery') return { kind, run, session }
  const task = random.bool() ? random.pick(TASKS) : undefined
  if (kind === 'score') return { kind, run, session, task }
  if (kind === 'event')
    return { kind, run, session, task, type: random.pick(TYPES.slice(0, -1)), level: random.pick(LEVELS) }
  const status = random.pick(STATUSES)
  if (kind === 'task') return { kind, run, session, status, task: random.pick(TASKS) }
  return { kind, run, status, session: randomSession(random), tags: TAGS.filter(() => random.bool(0.4)) }
}

function randomFilter(random: Random, runs: readonly RunRef[]): FilterInput {
  const some = <T>(from: readonly T[]) => Array.from({ length: random.int(1, 3) }, () => random.pick(from))
  const maybe = (field: FilterInput) => (random.bool(0.35) ? field : {})
  const types = TYPES.flatMap((type) => (type === '' || type.includes('*') ? ['*'] : [type, `${type}*`]))
  return {
    ...maybe({ agent_id: some(runs).map(({ agentId }) => agentId) }),
    ...maybe({ run_id: some(runs).map(({ runId }) => runId) }),
    ...maybe({ session_id: some(SESSIONS) }),
    ...maybe({ external_user_id: some(USERS) }),
    ...random.pick([
      maybe({ kind: some(KINDS) }),
      { ...maybe({ type: some(types) }), ...maybe({ level: random.pick(LEVELS) }), ...maybe({ task_id: some(TASKS) }) },
      { ...maybe({ status: some(STATUSES) }), ...maybe({ task_id: some(TASKS) }) },
      { ...maybe({ status: some(STATUSES) }), tag: some(TAGS) },
    ]),
  }
}

/** The specification of a filter, implemented independently. */
function passes(input: FilterInput, alerts: boolean, fact: Fact): boolean {
  if (fact.kind === 'delivery') return false
  return fact.kind === 'alert' ? alerts : passesConditions(input, fact)
}

/** The conditions of a filter of webhooks that concern a kind: it selects several, each by the fields that it has. */
function ofKind(input: FilterInput, { kind }: Fact): FilterInput {
  const fields = [
    'agent_id',
    'run_id',
    'session_id',
    'external_user_id',
    ...(kind === 'alert' || kind === 'delivery' ? [] : FIELDS[kind]),
  ]
  return Object.fromEntries(Object.entries(input).filter(([name]) => fields.includes(name)))
}

function passesConditions(input: FilterInput, { kind, run, type, level, status, tags, task, session }: Fact): boolean {
  const asked = (field: string) => input[field] as string | readonly string[] | undefined
  const has = (field: string, value: string | null | undefined) => {
    const values = asked(field)
    return values === undefined || (typeof value === 'string' && [values].flat().includes(value))
  }
  const passesType = () =>
    asked('type') === undefined ||
    (type !== undefined &&
      [asked('type')!].flat().some((each) => (each.endsWith('*') ? type.startsWith(each.slice(0, -1)) : each === type)))
  const rank = (word: string | undefined) => LEVELS.indexOf(word as (typeof LEVELS)[number])
  const passesLevel = () =>
    asked('level') === undefined || (level !== undefined && rank(level) >= rank(`${asked('level')}`))
  const passesTag = () => asked('tag') === undefined || (tags ?? []).some((tag) => has('tag', tag))
  return (
    [has('agent_id', run.agentId), has('run_id', run.runId), has('kind', kind), has('status', status)].every(Boolean) &&
    [has('session_id', session.session_id), has('external_user_id', session.external_user_id)].every(Boolean) &&
    [has('task_id', task), passesType(), passesLevel(), passesTag()].every(Boolean)
  )
}

test('every filter gets what it would get alone, whatever the other filters and time slices', async () => {
  const random = seededRandom('live matching')
  const journal = await newJournal()
  const { workspaceId } = runRef()
  const runs = Array.from({ length: 6 }, () => ({
    ...runRef(),
    workspaceId: random.bool(0.8) ? workspaceId : Bun.randomUUIDv7(),
    session: randomSession(random),
  }))
  const facts: Fact[] = []
  for (let calls = 0; calls < 120; calls++) {
    const fact = randomFact(random, runs)
    const { run } = fact
    const count = fact.kind === 'event' ? random.int(1, 30) : random.int(1, 3)
    const many = Array.from({ length: count }, () => ({ ...randomFact(random, runs), run, session: run.session }))
    if (fact.kind === 'event') {
      const events = many.map((each) => (each.kind === 'event' ? each : { ...fact, kind: 'event' as const }))
      await journal.appendEvents(
        batchOf(
          fact.run,
          events.map(({ type, level, task }) => ({ type, level, task_id: task })),
        ),
      )
      facts.push(...events)
    } else if (fact.kind === 'score') {
      const tasks = many.map(() => random.pick([undefined, ...TASKS]))
      await journal.appendScores(
        scoreBatch(
          fact.run,
          tasks.map((task_id) => definedOf({ task_id })),
        ),
      )
      facts.push(...tasks.map((task) => ({ ...fact, task })))
    } else if (fact.kind === 'task') {
      await journal.appendTasks(
        many.map(() => taskRow(fact.run, { status: fact.status as 'failed', task_id: fact.task! })),
        [],
      )
      facts.push(...many.map(() => fact))
    } else if (fact.kind === 'alert' || fact.kind === 'delivery') {
      const { workspaceId } = fact.run
      if (fact.kind === 'delivery') await journal.appendDeliveries(many.map(() => deliveryRow(workspaceId)))
      else
        await journal.appendSystemEvents(
          many.map(() => alertRow(workspaceId)),
          many.map(() => crypto.randomUUID()),
        )
      facts.push(...many.map(() => fact))
    } else {
      const { status, tags, session } = fact
      const rows = many.map(() => runRow(fact.run, { status: status as 'failed', ...session, tags: [...tags!] }))
      await journal.appendRuns(rows, [])
      facts.push(...many.map(() => fact))
    }
  }
  const inputs = Array.from({ length: 300 }, () => randomFilter(random, runs))
  const unions = inputs.map(() => random.bool(0.2))
  const filters = inputs.map((input, i) => {
    const parsed = parseFilter(input, 'filter', EVERYONE)
    const filter = unions[i] ? { ...parsed, kinds: new Set(KINDS), key: `any kind ${parsed.key}` } : parsed
    return random.bool(0.3) ? withWorkspaceEvents(filter) : filter
  })
  const afterSeq = random.int(0, 50)
  let time = 0
  const frames = await journal.read(0, 1e9)
  const rushed = new TimeSlice(() => (time += random.int(0, 10)))
  const lookUpSessions = async () =>
    new Map(runs.map(({ workspaceId, runId, session }) => [runKey(workspaceId, runId), session]))
  const query = { epoch: journal.epoch, afterSeq, workspaceId, slice: rushed, lookUpSessions }
  // Many filters use the index, few are compared one by one.
  for (const together of [inputs.length, 7]) {
    for (let first = 0; first < inputs.length; first += together) {
      const found = await matchAll(frames, { ...query, filters: filters.slice(first, first + together) })
      found.forEach((items, index) => {
        const input = inputs[first + index]!
        const isUnion = unions[first + index]!
        const alerts = filters[first + index]!.workspaceEvents === true
        const expected = facts.flatMap((fact, at) =>
          fact.run.workspaceId === workspaceId &&
          at + 1 > afterSeq &&
          passes(isUnion ? ofKind(input, fact) : input, alerts, fact)
            ? [at + 1]
            : [],
        )
        expect({ input, alerts, seqs: items.map(({ seq }) => seq) }).toEqual({ input, alerts, seqs: expected })
      })
    }
  }
})

test('an index after removals equals one that never had these filters', () => {
  const random = seededRandom('filter index')
  const runs = Array.from({ length: 4 }, () => ({ ...runRef(), session: randomSession(random) }))
  const index = new FilterIndex()
  const held = new Map<number, { input: FilterInput; alerts: boolean; filter: Filter }>()
  const slots = new Bits()
  for (let round = 0; round < 400; round++) {
    const gone = held.size > 0 && random.bool(0.45) ? random.pick([...held.keys()]) : undefined
    if (gone === undefined) {
      const input = randomFilter(random, runs)
      const alerts = random.bool(0.3)
      const parsed = parseFilter(input, 'filter', EVERYONE)
      const filter = alerts ? withWorkspaceEvents(parsed) : parsed
      const slot = index.add(filter)
      expect(held.has(slot)).toBe(false)
      held.set(slot, { input, alerts, filter })
      slots.add(slot)
    } else {
      index.remove(held.get(gone)!.filter, gone)
      held.delete(gone)
      slots.delete(gone)
    }
    const fact = randomFact(random, runs)
    const left = new Bits()
    left.assign(slots)
    const { kind, type, level, status, task = null, session, tags = [] } = fact
    if (kind === 'delivery') continue
    if (kind === 'alert') index.narrowToWorkspaceEvents(left)
    else index.narrowToRun(left, kind, fact.run.agentId, fact.run.runId)
    if (kind !== 'alert' && kind !== 'run') index.narrowToSession(left, session)
    if (kind === 'event') index.narrowToEvent(left, type!, LEVELS.indexOf(level as 'info') + 1, task)
    else if (kind === 'task') index.narrowToTask(left, status!, task)
    else if (kind === 'run') index.narrowToState(left, status!, session, tags)
    else if (kind === 'score') index.narrowToScore(left, task)
    const passing: number[] = []
    left.forEach((slot) => void passing.push(slot))
    const expected = [...held].flatMap(([slot, { input, alerts }]) => (passes(input, alerts, fact) ? [slot] : []))
    expect(passing).toEqual(expected.sort((a, b) => a - b))
  }
})

describe('many filters and a long call', () => {
  const FILTERS = 2_500

  async function framesOf(count: number): Promise<{ frames: readonly Frame[]; epoch: string; run: RunRef }> {
    const journal = await newJournal()
    const run = runRef()
    const events = Array.from({ length: count }, (_, n) => ({ type: `type.${n % 100}` }))
    await journal.appendEvents(batchOf(run, events))
    return { frames: await journal.read(0, 1e9), epoch: journal.epoch, run }
  }

  async function match(
    count: number,
    typesOf: (n: number) => string[],
  ): Promise<{ checks: number; found: Activity[][]; pieces: number[] }> {
    const { frames, epoch, run } = await framesOf(count)
    const filters = Array.from({ length: FILTERS }, (_, n) => parseFilter({ type: typesOf(n) }, 'filter', EVERYONE))
    let checks = 0
    // The clock stands still: the test counts how often it is read.
    const slice = new TimeSlice(() => {
      checks++
      return 0
    })
    const pieces: number[] = []
    const query = { epoch, afterSeq: 0, workspaceId: run.workspaceId, filters, slice }
    const found = await matchAll(frames, { ...query, onHandOut: (matches) => void pieces.push(matches) })
    return { checks, found, pieces }
  }

  test('reads the clock after bounded work, and holds a bounded number of matches', async () => {
    const { checks, found, pieces } = await match(1_000, (n) => ['type.*', `none.${n}`])
    const matches = 1_000 * FILTERS
    expect(found.every((items) => items.length === 1_000)).toBe(true)
    expect(Math.max(...pieces)).toBeLessThanOrEqual(MATCHES_MAX + WORK_PER_CHECK + FILTERS)
    expect(checks + pieces.length).toBeGreaterThanOrEqual(matches / (WORK_PER_CHECK + FILTERS))
    // Each item is created once and shared.
    expect(found.every((items) => items.every((item, n) => item === found[0]![n]))).toBe(true)
  })

  test('checks a row only against the filters that match it', async () => {
    const { checks, found, pieces } = await match(5_000, (n) => [`type.${n % 100}`, `none.${n}`])
    expect(found.every((items) => items.length === 50)).toBe(true)
    const matches = 50 * FILTERS
    expect(pieces.reduce((sum, piece) => sum + piece, 0)).toBe(matches)
    // Work is rows plus matches: checking every filter for every row would take a hundred times as many clock readings.
    expect(checks).toBeLessThanOrEqual((5_000 + matches) / WORK_PER_CHECK + 1)
  })
})
