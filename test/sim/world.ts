import { createLog } from '../../src/base/log.ts'
import type { Journal } from '../../src/stores/journal/journal.ts'
import { KINDS } from '../../src/stores/journal/kinds.ts'
import { openNatsJournal } from '../../src/stores/journal/nats/journal.ts'
import { openNatsReader } from '../../src/stores/journal/nats/reader.ts'
import { Stream } from '../../src/stores/journal/nats/stream.ts'
import { Sink } from '../../src/stores/sink/sink.ts'
import { batchOf } from '../support/events.ts'
import { deliveryRow } from '../support/rows.ts'
import { SimulatedCounts } from './counts.ts'
import { DiskWorld } from './disk-world.ts'
import { type FaultKind, Faults, type Happened, type Trace, type WorldName } from './faults.ts'
import { EVENT_TYPES, SimulatedFeeds } from './feeds.ts'
import { SimulatedOutbox } from './outbox.ts'
import type { Owner, Part, Surroundings } from './part.ts'
import { MemoryPosition, MemoryTable, type Row, rowsOf } from './stores.ts'
import type { Case } from './story.ts'
import { MemoryStream, type StreamFaults } from './stream.ts'
import { SimulatedProcess, time } from './virtual-time.ts'

const WORKSPACE = '00000000-0000-4000-8000-00000000000a'
/** The runs whose events the world reports. */
const RUNS = [1, 2, 3].map((run) => ({
  workspaceId: WORKSPACE,
  agentId: '00000000-0000-4000-8000-00000000000b',
  runId: `00000000-0000-4000-8000-0000000000c${run}`,
  runtimeType: 'external' as const,
}))
const EPOCH = { epoch: 'e1', firstSeq: 1 }
const SIZES = { maxBytes: 2 ** 40, keepBytes: 2 ** 40 }
const log = createLog('silent')
/** In virtual time. */
const WORLD_MS_MAX = 10 * 60_000
const LATE_MS_MAX = 3_000
/** Longer than the servers remember the ids of messages. */
const PAUSE_MS_MAX = 40_000
const LOADED_WITHIN_MS = 60_000
const POLL_MS = 50

/** The worlds around the log. */
type LogWorldName = Exclude<WorldName, 'database' | 'disk'>

/** What takes part beside the log and the sink. */
const PARTS = {
  log: () => [],
  feeds: (world: Surroundings, stream: MemoryStream) => [new SimulatedFeeds(world, stream)],
  outbox: (world: Surroundings) => [new SimulatedOutbox(world), new SimulatedCounts(world)],
} satisfies Record<LogWorldName, (world: Surroundings, stream: MemoryStream) => readonly Part[]>

/** What a seed has shown. */
export interface Outcome {
  /** What is wrong; none when everything holds. */
  readonly problems: readonly string[]
  /** Equal for two runs that took the same steps. */
  readonly fingerprint: number
  /** In the order in which they happened. */
  readonly happened: readonly Happened[]
  /** What the seed drew, and was left out. */
  readonly leftOut: readonly string[]
}

/**
 * Runs one world to its end: owners of one log follow each other while the stream, ClickHouse and Postgres fail; then everything
 * heals, and what was acknowledged is compared with what is stored.
 * @param trace is told what happens
 */
export async function runWorld({ world: name, seed, steps, without }: Case, trace: Trace): Promise<Outcome> {
  time.reset(seed)
  const faults = new Faults(without)
  const world = name === 'disk' ? new DiskWorld(faults, trace) : new World(name as LogWorldName, faults, trace)
  const { problems } = world
  let isOver = false
  const end = () => {
    isOver = true
  }
  const broke = (error: Error) => void problems.push(`broke: ${error.message}`)
  world.run(steps).catch(broke).finally(end)
  await time.runUntil(() => isOver, WORLD_MS_MAX).catch(broke)
  if (!isOver) problems.push('never ends')
  world.end()
  const { happened, leftOut } = faults
  return { problems, fingerprint: time.fingerprint, happened, leftOut }
}

class World {
  readonly problems: string[] = []
  private readonly stream: MemoryStream
  private readonly table: MemoryTable
  private readonly position: MemoryPosition
  private readonly parts: readonly Part[]
  private isHealthy = false
  /** Some worlds are calmer than others. */
  private readonly intensity: number
  /** By generation. */
  private readonly processes: SimulatedProcess[] = []
  private readonly owners: Owner[] = []
  private owner: Owner | undefined
  private readonly acknowledged: { readonly id: string; readonly seq: number }[] = []
  /** What has yet to end, and in which process. */
  private readonly pending = new Map<Promise<void>, SimulatedProcess>()
  private readonly leave: () => void

  constructor(
    name: LogWorldName,
    private readonly faults: Faults,
    private readonly trace: Trace,
  ) {
    const { random } = time
    this.intensity = random.chance(0.3) ? 0.3 : 3
    // Small messages, so that a commit has several parts.
    this.stream = new MemoryStream(random.chance(0.3) ? 256 : undefined)
    this.stream.faults = this.streamFaults()
    this.leave = this.stream.replaceReal(Stream)
    const delay = () => this.delay()
    this.table = new MemoryTable({
      delay,
      failsBefore: () => this.fails(0.05, 'ClickHouse', 'load refused'),
      failsAfter: () => this.fails(0.05, 'ClickHouse', 'load unanswered'),
    })
    this.position = new MemoryPosition({
      delay,
      failsBefore: () => this.fails(0.02, 'Postgres', 'position refused'),
      failsAfter: () => this.fails(0.02, 'Postgres', 'position unanswered'),
    })
    this.parts = PARTS[name](this.surroundings(), this.stream)
  }

  async run(steps: number): Promise<void> {
    void this.takeOver()
    for (let number = 1; number <= steps; number++) {
      const name = `step ${number}`
      const process = new SimulatedProcess(name)
      // When it happens depends on nothing that may be left out.
      await Bun.sleep(process.random.chance(0.2) ? process.random.next() * 400 : process.random.int(0, 4))
      if (this.faults.takes(name)) time.within(process, () => this.begin(process, this.step(number)))
    }
    this.trace('world', 'everything heals')
    this.isHealthy = true
    this.stream.isFull = false
    this.stream.leaderLacks = 0
    for (const part of this.parts) part.heal?.()
    while (this.pending.values().some(({ isDead }) => !isDead)) await Bun.sleep(POLL_MS)
    // What is late has arrived, and nothing is paused any more.
    await Bun.sleep(Math.max(LATE_MS_MAX * 2, ...this.processes.map(({ pausedUntilMs }) => pausedUntilMs - time.nowMs)))
    await this.check()
  }

  /** Ends everything that is still running. */
  end(): void {
    for (const process of this.processes) process.isDead = true
    for (const part of this.parts) part.end?.()
    this.leave()
  }

  /** The end of the world waits for this work, unless its process dies. */
  private begin(process: SimulatedProcess, work: Promise<void>): void {
    this.pending.set(work, process)
    const broke = (error: Error) => void this.problems.push(`broke: ${error.message}`)
    void work.catch(broke).finally(() => this.pending.delete(work))
  }

  private async step(number: number): Promise<void> {
    const { stream, parts } = this
    const { random } = time
    if (parts.length > 0 && random.chance(0.25)) return random.pick(parts).step()
    const pick = random.next()
    if (this.owner === undefined && random.chance(0.3)) void this.takeOver()
    else if (pick < 0.8) this.append(`row ${number}`)
    else if (pick < 0.87) {
      if (this.faults.happens('owner replaced')) void this.takeOver()
    } else if (pick < 0.91) {
      const lacks = random.int(1, 3)
      if (!this.faults.happens('leader lags')) return
      stream.leaderLacks = lacks
      this.trace('stream', `the leader lacks the newest ${lacks} messages`)
      this.later(800, 'the leader has all messages', () => {
        stream.leaderLacks = 0
      })
    } else if (pick < 0.96) {
      this.pause()
    } else if (this.faults.happens('servers full')) {
      stream.isFull = true
      this.trace('stream', 'the servers are full')
      this.later(3_000, 'the servers have room', () => {
        stream.isFull = false
      })
    }
  }

  /** One of the owners stands still, as when its machine sleeps or its disk hangs: most often the newest one. */
  private pause(): void {
    const { random } = time
    const owner = random.chance(0.7) ? this.owner : random.pick(this.owners)
    if (owner === undefined) return
    const ms = random.next() ** 2 * PAUSE_MS_MAX
    if (!this.faults.happens('owner paused')) return
    owner.process.pausedUntilMs = time.nowMs + ms
    this.trace(owner.process.name, `is paused for ${Math.round(ms)} ms`)
  }

  /** A new owner; the one before may be dead, or still believe that it is the owner. */
  private takeOver(): Promise<void> {
    const generation = ++this.position.generation
    const before = this.processes.at(-1)
    if (before !== undefined && this.chance(0.1) && this.faults.happens('owner dies')) before.isDead = true
    const process = new SimulatedProcess(`owner ${generation}`)
    this.processes.push(process)
    const who = before === undefined ? '' : `; the one before is ${before.isDead ? 'dead' : 'alive'}`
    this.trace(process.name, `opens the log${who}`)
    const opened = time.within(process, () => this.own(generation, process))
    this.begin(process, opened)
    return opened
  }

  private async own(generation: number, process: SimulatedProcess): Promise<void> {
    const position = this.position.storeOf(generation)
    const { loadedSeq, inFlightSeq } = position.get()
    try {
      const journal = await openNatsJournal({
        ...this.log,
        ...SIZES,
        replicas: 3,
        generation,
        clock: Date,
        beginEpoch: async () => EPOCH,
        onLost: (reason) => this.begin(process, this.lose(generation, reason)),
        decideStart: async () => ({ afterSeq: Math.max(loadedSeq, inFlightSeq), loadedSeq, newEpoch: false }),
        // Without memory, everything is read from the stream.
        ...(process.random.chance(0.5) && { tailBytes: 1 }),
      })
      const sink = new Sink({ journal, log, position, ...this.table.options })
      const owner: Owner = { generation, process, journal, sink, started: [] }
      this.owners.push(owner)
      for (const part of this.parts) {
        const started = await part.opened?.(owner)
        if (started !== undefined) owner.started.push(started)
      }
      if (generation === this.position.generation) this.owner = owner
    } catch (error) {
      this.trace(process.name, 'cannot open the log', (error as Error).message)
    }
  }

  private get log() {
    return { nc: undefined as never, stream: 'j', subject: 'j', sealKey: Buffer.alloc(32, 1), epochs: [EPOCH], log }
  }

  private async lose(generation: number, reason: string): Promise<void> {
    this.trace(`owner ${generation}`, 'has lost the log', reason)
    if (this.owner?.generation === generation) this.owner = undefined
    const owner = this.owners.find((each) => each.generation === generation)
    if (owner !== undefined) await this.stop(owner)
  }

  /** As `OpenedPartition.stop` does. */
  private async stop({ started, sink, journal }: Owner): Promise<void> {
    for (const each of started.toReversed()) await each.stop()
    await sink.stop(0)
    await journal.close()
  }

  private append(id: string): void {
    const { owner } = this
    if (owner === undefined) return
    this.trace(owner.process.name, `is sent ${id}`)
    this.begin(
      owner.process,
      this.appendTo(owner, id).catch((error) => this.refused(owner, id, error)),
    )
  }

  private refused({ process }: Owner, id: string, error: Error): void {
    this.trace(process.name, `answers ${id}`, `refused: ${error.message}`)
  }

  private async appendTo({ journal, process }: Owner, id: string): Promise<void> {
    const { random } = time
    // Half of the rows are what feeds do not show.
    const types = Array.from({ length: random.chance(0.5) ? 0 : random.int(1, 3) }, () => random.pick(EVENT_TYPES))
    const run = random.pick(RUNS)
    const ids = types.length === 0 ? [id] : types.map((_, index) => `${id} ${index}`)
    const events = types.map((type) => ({ type }))
    const append = () =>
      types.length === 0
        ? journal.appendDeliveries([deliveryRow(WORKSPACE, { delivery_id: id })])
        : journal.appendEvents({ ...batchOf(run, events), ids })
    // Its request reaches a process that is paused once that goes on.
    const { firstSeq: seq } = await time.within(process, () => Bun.sleep(0).then(append))
    this.trace(process.name, `answers ${id}`, `acknowledged at ${seq}`)
    ids.forEach((each, index) => void this.acknowledged.push({ id: each, seq: seq + index }))
  }

  private surroundings(): Surroundings {
    const { trace, faults, log, table } = this
    return {
      ...{ workspaceId: WORKSPACE, runs: RUNS, trace, faults, log, table },
      generation: () => this.position.generation,
      delay: () => this.delay(),
      fails: (...fault) => this.fails(...fault),
      problem: (text) => void this.problems.push(text),
    }
  }

  /** Compares what was acknowledged with what is stored, once the last owner has loaded everything. */
  private async check(): Promise<void> {
    const { problems } = this
    const owner = await this.lastOwner()
    const deadlineMs = time.nowMs + LOADED_WITHIN_MS
    while (this.parts.some((part) => part.isDone?.(owner) === false) && time.nowMs < deadlineMs)
      await Bun.sleep(POLL_MS)
    if (!(await owner.sink.waitFor(owner.journal.endSeq, LOADED_WITHIN_MS)))
      problems.push('the sink never gets to the end')
    const reader = await openNatsReader(this.log)
    const stored = await this.storedIn(reader)
    for (const { id, seq } of this.acknowledged) {
      const found = stored.filter((row) => row.id === id).map((row) => row.seq)
      if (found.length !== 1 || found[0] !== seq)
        problems.push(`${id}: acknowledged at ${seq}, in the log at ${found.join(' and ') || 'no position'}`)
    }
    for (const { id } of stored) {
      const copies = this.table.rows.filter((row) => row.id === id).length
      if (copies !== 1) problems.push(`${id}: in the log, ${copies} times in ClickHouse`)
    }
    for (const part of this.parts) await part.check(stored, owner)
    if (reader.gaps.length > 0) problems.push(`gaps that nothing has caused: ${JSON.stringify(reader.gaps)}`)
    await reader.close()
    await time.within(owner.process, () => this.stop(owner))
  }

  /** The newest owner, once it has acknowledged a row: it may learn only then that a late message has fenced it off. */
  private async lastOwner(): Promise<Owner> {
    for (let tries = 0; tries < 5; tries++) {
      if (this.owner?.generation !== this.position.generation) await this.takeOver()
      const { owner } = this
      if (owner === undefined) continue
      const id = `last row ${tries}`
      const isStored = await this.appendTo(owner, id).then(
        () => true,
        (error) => this.refused(owner, id, error),
      )
      if (isStored === true) return owner
    }
    throw new Error('no owner can write the log, although nothing fails')
  }

  private async storedIn(reader: Pick<Journal, 'read'>): Promise<Row[]> {
    const found: Row[] = []
    for (let at = 0; ; ) {
      const frames = await reader.read(at, 2 ** 20)
      if (frames.length === 0) return found
      for (const { block, kind, firstSeq, rows } of frames) {
        found.push(...rowsOf(block, KINDS[kind].rows))
        at = firstSeq + rows - 1
      }
    }
  }

  private streamFaults(): StreamFaults {
    return {
      delay: () => this.delay(),
      fateOf: ({ streamSeq }) => {
        const fate = this.chance(0.01)
          ? 'lost'
          : this.chance(0.02)
            ? 'unanswered'
            : this.chance(0.01)
              ? 'late'
              : 'stored'
        if (fate === 'stored' || !this.faults.happens(`message ${fate}`)) return 'stored'
        this.trace('stream', `message ${streamSeq}`, fate)
        return fate
      },
      lateMs: () => time.random.next() * LATE_MS_MAX,
    }
  }

  private later(ms: number, what: string, run: () => void): void {
    time.after(time.random.next() * ms, () => {
      this.trace('stream', what)
      run()
    })
  }

  private chance(probability: number): boolean {
    return !this.isHealthy && time.random.chance(probability * this.intensity)
  }

  private fails(probability: number, who: string, kind: FaultKind): boolean {
    if (!this.chance(probability) || !this.faults.happens(kind)) return false
    this.trace(who, kind)
    return true
  }

  private delay(): Promise<void> {
    return Bun.sleep(time.random.next() * (time.random.chance(0.9) ? 3 : 60))
  }
}
