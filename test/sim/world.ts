import { createLog } from '../../src/base/log.ts'
import { createRandom } from '../../src/cli/demo/random.ts'
import type { Journal } from '../../src/stores/journal/journal.ts'
import { openNatsJournal } from '../../src/stores/journal/nats/journal.ts'
import { openNatsReader } from '../../src/stores/journal/nats/reader.ts'
import { Stream } from '../../src/stores/journal/nats/stream.ts'
import { Sink } from '../../src/stores/sink/sink.ts'
import { batchOf } from '../support/events.ts'
import { deliveryRow } from '../support/rows.ts'
import { type Fault, type FaultKind, Faults, type Trace } from './faults.ts'
import { EVENT_TYPES, SimulatedFeeds } from './feeds.ts'
import { MemoryPosition, MemoryTable, type Row, rowsOf, type StoreFaults } from './stores.ts'
import type { Case } from './story.ts'
import { MemoryStream, type StreamFaults } from './stream.ts'
import { type SimulatedProcess, time } from './virtual-time.ts'

const WORKSPACE = '00000000-0000-4000-8000-00000000000a'
/** The run whose events the world reports. */
const RUN = {
  workspaceId: WORKSPACE,
  agentId: '00000000-0000-4000-8000-00000000000b',
  runId: '00000000-0000-4000-8000-00000000000c',
  runtimeType: 'external',
} as const
const EPOCH = { epoch: 'e1', firstSeq: 1 }
const SIZES = { maxBytes: 2 ** 40, keepBytes: 2 ** 40 }
const log = createLog('silent')
/** In virtual time. */
const WORLD_MS_MAX = 10 * 60_000
const LATE_MS_MAX = 3_000
/** Longer than the servers remember the ids of messages. */
const PAUSE_MS_MAX = 40_000
const LOADED_WITHIN_MS = 60_000

/** An owner of the log: a process that writes it, and loads it into ClickHouse. */
interface Owner {
  readonly generation: number
  readonly process: SimulatedProcess
  readonly journal: Journal
  readonly sink: Sink
}

/** What takes part: `log` is the log and the sink; in `feeds`, subscribers read it, too. */
export const WORLDS = ['log', 'feeds'] as const
export type WorldName = (typeof WORLDS)[number]

/** What a seed has shown. */
export interface Outcome {
  /** What is wrong; none when everything holds. */
  readonly problems: readonly string[]
  /** Equal for two runs that took the same steps. */
  readonly fingerprint: number
  /** In the order in which they happened. */
  readonly faults: readonly Fault[]
}

/**
 * Runs one world to its end: owners of one log follow each other while the stream, ClickHouse and Postgres fail; then everything
 * heals, and what was acknowledged is compared with what is stored.
 * @param trace is told what happens
 */
export async function runWorld({ world: name, seed, steps, without }: Case, trace: Trace): Promise<Outcome> {
  const random = createRandom(seed)
  time.reset(random.next)
  const faults = new Faults(without)
  const world = new World(name, random, faults, trace)
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
  return { problems, fingerprint: time.fingerprint, faults: faults.happened }
}

class World {
  readonly problems: string[] = []
  private readonly stream: MemoryStream
  private readonly table: MemoryTable
  private readonly position: MemoryPosition
  private isHealthy = false
  /** Some worlds are calmer than others. */
  private readonly intensity: number
  /** Generations of processes that have died. */
  private readonly dead = new Set<number>()
  private readonly owners: Owner[] = []
  private owner: Owner | undefined
  private readonly acknowledged: { readonly id: string; readonly seq: number }[] = []
  private readonly pending: Promise<void>[] = []
  private appends = 0
  private readonly feeds: SimulatedFeeds | undefined
  private readonly leave: () => void

  constructor(
    name: WorldName,
    private readonly random: ReturnType<typeof createRandom>,
    private readonly faults: Faults,
    private readonly trace: Trace,
  ) {
    this.intensity = random.chance(0.3) ? 0.3 : 3
    // Small messages, so that a commit has several parts.
    this.stream = new MemoryStream(random.chance(0.3) ? 256 : undefined)
    this.stream.faults = this.streamFaults()
    this.leave = this.stream.replaceReal(Stream)
    const delay = () => this.delay()
    const client: StoreFaults = {
      delay,
      failsBefore: () => this.fails(0.05, 'ClickHouse', 'load refused'),
      failsAfter: () => this.fails(0.05, 'ClickHouse', 'load unanswered'),
    }
    const position: StoreFaults = {
      delay,
      failsBefore: () => this.fails(0.02, 'Postgres', 'position refused'),
      failsAfter: () => this.fails(0.02, 'Postgres', 'position unanswered'),
    }
    this.table = new MemoryTable(client)
    this.position = new MemoryPosition(position)
    if (name === 'feeds') this.feeds = this.openFeeds()
  }

  async run(steps: number): Promise<void> {
    await this.takeOver()
    for (let step = 0; step < steps; step++) await this.step()
    this.trace('world', 'everything heals')
    this.isHealthy = true
    this.stream.isFull = false
    this.stream.leaderLacks = 0
    this.feeds?.heal()
    await Promise.all(this.pending)
    // What is late has arrived, and nothing is paused any more.
    await Bun.sleep(Math.max(LATE_MS_MAX * 2, ...this.owners.map(({ process }) => process.pausedUntilMs - time.nowMs)))
    await this.check()
    const stopping = this.owners.filter(({ generation }) => !this.dead.has(generation))
    await Promise.all(stopping.map(({ sink, journal }) => sink.stop(0).then(() => journal.close())))
  }

  /** Ends everything that is still running. */
  end(): void {
    this.feeds?.leave()
    this.leave()
  }

  private async step(): Promise<void> {
    const { random, stream } = this
    if (this.feeds !== undefined && random.chance(0.25)) {
      const lacks = random.int(0, 3)
      stream.replicaLacks = lacks > 0 && this.faults.happens('replica lags') ? lacks : 0
      this.feeds.step()
    }
    const pick = random.next()
    if (pick < 0.7) this.append()
    else if (pick < 0.76) {
      if (this.faults.happens('owner replaced')) await this.takeOver()
    } else if (pick < 0.79) {
      const lacks = random.int(1, 3)
      if (!this.faults.happens('leader lags')) return
      stream.leaderLacks = lacks
      this.trace('stream', `the leader lacks the newest ${lacks} messages`)
      this.later(800, 'the leader has all messages', () => {
        stream.leaderLacks = 0
      })
    } else if (pick < 0.83) {
      this.pause()
    } else if (pick < 0.86) {
      if (!this.faults.happens('servers full')) return
      stream.isFull = true
      this.trace('stream', 'the servers are full')
      this.later(3_000, 'the servers have room', () => {
        stream.isFull = false
      })
    } else await Bun.sleep(random.next() * 400)
    if (this.owner === undefined && random.chance(0.3)) await this.takeOver()
  }

  /** One of the owners stands still, as when its machine sleeps or its disk hangs: most often the newest one. */
  private pause(): void {
    const owner = this.random.chance(0.7) ? this.owner : this.random.pick(this.owners)
    if (owner === undefined) return
    const ms = this.random.next() ** 2 * PAUSE_MS_MAX
    if (!this.faults.happens('owner paused')) return
    owner.process.pausedUntilMs = time.nowMs + ms
    this.trace(`owner ${owner.generation}`, `is paused for ${Math.round(ms)} ms`)
  }

  /** A new owner; the one before may be dead, or still believe that it is the owner. */
  private async takeOver(): Promise<void> {
    const generation = ++this.position.generation
    if (this.random.chance(0.5) && generation > 1 && this.faults.happens('owner dies')) this.dead.add(generation - 1)
    const isDead = () => this.dead.has(generation)
    const process = { pausedUntilMs: 0 }
    const before = this.dead.has(generation - 1) ? 'dead' : 'alive'
    this.trace(`owner ${generation}`, generation === 1 ? 'opens the log' : `takes over; the one before is ${before}`)
    const position = this.position.storeOf(generation, isDead)
    const { loadedSeq, inFlightSeq } = position.get()
    try {
      const journal = await time.within(process, () =>
        openNatsJournal({
          ...this.log,
          ...SIZES,
          replicas: 3,
          generation,
          clock: Date,
          beginEpoch: async () => EPOCH,
          onLost: (reason) => this.lose(generation, reason),
          decideStart: async () => ({ afterSeq: Math.max(loadedSeq, inFlightSeq), loadedSeq, newEpoch: false }),
          // Without memory, everything is read from the stream.
          ...(this.random.chance(0.5) && { tailBytes: 1 }),
        }),
      )
      const sink = time.within(process, () => new Sink({ journal, log, position, ...this.table.optionsOf(isDead) }))
      const owner = { generation, process, journal, sink }
      this.owners.push(owner)
      if (generation === this.position.generation) this.owner = owner
    } catch (error) {
      this.trace(`owner ${generation}`, 'cannot open the log', (error as Error).message)
    }
  }

  private get log() {
    return { nc: undefined as never, stream: 'j', subject: 'j', sealKey: Buffer.alloc(32, 1), epochs: [EPOCH], log }
  }

  private lose(generation: number, reason: string): void {
    this.trace(`owner ${generation}`, 'has lost the log', reason)
    if (this.owner?.generation === generation) this.owner = undefined
  }

  private append(): void {
    const { owner } = this
    if (owner === undefined) return
    const id = `row ${++this.appends}`
    this.trace(`owner ${owner.generation}`, `is sent ${id}`)
    this.pending.push(this.appendTo(owner, id).catch((error) => this.refused(owner, id, error)))
  }

  private refused({ generation }: Owner, id: string, error: Error): void {
    this.trace(`owner ${generation}`, `answers ${id}`, `refused: ${error.message}`)
  }

  private async appendTo({ journal, process, generation }: Owner, id: string): Promise<void> {
    // Half of the rows are what feeds do not show.
    const types = this.feeds === undefined || this.random.chance(0.5) ? [] : this.pickTypes()
    const ids = types.length === 0 ? [id] : types.map((_, index) => `${id} ${index}`)
    const append = () =>
      types.length === 0
        ? journal.appendDeliveries([deliveryRow(WORKSPACE, { delivery_id: id })])
        : journal.appendEvents({
            ...batchOf(
              RUN,
              types.map((type) => ({ type })),
            ),
            ids,
          })
    // Its request reaches a process that is paused once that goes on.
    const { firstSeq: seq } = await time.within(process, () => Bun.sleep(0).then(append))
    this.trace(`owner ${generation}`, `answers ${id}`, `acknowledged at ${seq}`)
    ids.forEach((each, index) => void this.acknowledged.push({ id: each, seq: seq + index }))
  }

  private pickTypes(): readonly string[] {
    return Array.from({ length: this.random.int(1, 3) }, () => this.random.pick(EVENT_TYPES))
  }

  private openFeeds(): SimulatedFeeds {
    return new SimulatedFeeds({
      ...{ workspaceId: WORKSPACE, random: this.random, log: this.log, trace: this.trace, faults: this.faults },
      delay: () => this.delay(),
      problem: (text) => void this.problems.push(text),
    })
  }

  /** Compares what was acknowledged with what is stored, once the last owner has loaded everything. */
  private async check(): Promise<void> {
    const { problems } = this
    const owner = await this.lastOwner()
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
    await this.feeds?.check(stored.flatMap(({ seq, type }) => (type === undefined ? [] : { seq, type })))
    if (reader.gaps.length > 0) problems.push(`gaps that nothing has caused: ${JSON.stringify(reader.gaps)}`)
    await reader.close()
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
        found.push(...rowsOf(block, kind))
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
      lateMs: () => this.random.next() * LATE_MS_MAX,
    }
  }

  private later(ms: number, what: string, run: () => void): void {
    time.after(this.random.next() * ms, () => {
      this.trace('stream', what)
      run()
    })
  }

  private chance(probability: number): boolean {
    return !this.isHealthy && this.random.chance(probability * this.intensity)
  }

  private fails(probability: number, who: string, kind: FaultKind): boolean {
    if (!this.chance(probability) || !this.faults.happens(kind)) return false
    this.trace(who, kind)
    return true
  }

  private delay(): Promise<void> {
    return Bun.sleep(this.random.next() * (this.random.chance(0.9) ? 3 : 60))
  }
}
