import { createLog } from '../../src/base/log.ts'
import { type JournalReader, lastSeqOf } from '../../src/stores/journal/journal.ts'
import { KINDS } from '../../src/stores/journal/kinds.ts'
import { type LocalJournal, openLocalJournal } from '../../src/stores/journal/local/journal.ts'
import { openLocalReader } from '../../src/stores/journal/local/reader.ts'
import type { OutboxRelay } from '../../src/stores/journal/outbox-relay.ts'
import { decideStart } from '../../src/stores/journal/start.ts'
import { SinkPositionFile } from '../../src/stores/sink/position.ts'
import { Sink } from '../../src/stores/sink/sink.ts'
import { batchOf } from '../support/events.ts'
import { deliveryRow } from '../support/rows.ts'
import { Disk, useDisk } from './disk.ts'
import type { FaultKind, Faults, Trace } from './faults.ts'
import { SimulatedOutbox } from './outbox.ts'
import { MemoryTable, rowsOf } from './stores.ts'
import { SimulatedProcess, time } from './virtual-time.ts'

const WORKSPACE = '00000000-0000-4000-8000-00000000000a'
const RUN = {
  workspaceId: WORKSPACE,
  agentId: '00000000-0000-4000-8000-00000000000b',
  runId: '00000000-0000-4000-8000-00000000000c',
  runtimeType: 'external',
} as const
const DIR = '/data/journal'
const DAY_MS = 86_400_000
const log = createLog('silent')
const PAUSE_MS_MAX = 10_000
const LATE_MS_MAX = 10_000
const TROUBLE_MS_MAX = 3_000
/** A call to the disk may take this long. */
const SLOW_MS_MAX = 4_000
const FAILS_AGAIN_MS = 20
const SETTLED_WITHIN_MS = 60_000
const BYTES_MAX = 12_000

/** The process that writes the log. */
interface Writer {
  readonly process: SimulatedProcess
  readonly journal: LocalJournal
  readonly sink: Sink
  readonly relay: OutboxRelay
}

/** Rows of one call. */
interface Call {
  readonly ids: readonly string[]
  /** Where they are, once that is acknowledged. */
  firstSeq?: number
}

/**
 * The log in files on a machine whose disk and power fail: one process at a time writes it, loads it into ClickHouse and relays
 * the outbox to it, and another one reads it. Both servers are elsewhere.
 */
export class DiskWorld {
  readonly problems: string[] = []
  private readonly disk: Disk
  private readonly table: MemoryTable
  private readonly outbox: SimulatedOutbox
  private readonly intensity: number
  private isHealthy = false
  private isSlow = false
  /** When a write or sync last failed. */
  private failedAtMs = Number.NEGATIVE_INFINITY
  private writer: Writer | undefined
  private reader: SimulatedProcess | undefined
  /** A process that has not opened the log yet, or is closing it. */
  private opening: SimulatedProcess | undefined
  private readonly running = new Set<SimulatedProcess>()
  private writers = 0
  private readers = 0
  private days = 0
  private readonly calls: Call[] = []
  /** What anybody has seen, by position. */
  private readonly seen = new Map<number, string>()
  /** How far the reader's user has come. */
  private cursor = 0
  private readonly segmentBytes: number
  private readonly maxBytes: number

  constructor(
    private readonly faults: Faults,
    private readonly trace: Trace,
  ) {
    const { random } = time
    this.intensity = random.chance(0.3) ? 0.3 : 2
    this.segmentBytes = random.pick([4_096, 16_384, 65_536])
    this.maxBytes = random.pick([2 ** 40, 2 ** 16])
    this.disk = new Disk(
      {
        before: () => this.beforeCall(),
        delay: (isSync) => this.diskDelay(isSync),
        chance: (probability) => time.random.chance(probability),
        fails: (kind) => this.failsAgain(kind),
      },
      random.pick([512, 4_096]),
      random.chance(0.5),
    )
    useDisk(this.disk)
    this.disk.makeDir('/data')
    this.disk.find('/').sync()
    const delay = () => this.delay()
    const fails = (probability: number, who: string, kind: FaultKind) => this.fails(probability, who, kind)
    const store = {
      delay,
      failsBefore: () => fails(0.05, 'ClickHouse', 'load refused'),
      failsAfter: () => fails(0.05, 'ClickHouse', 'load unanswered'),
    }
    this.table = new MemoryTable(store, Number.POSITIVE_INFINITY)
    const problem = (text: string) => this.problem(text)
    this.outbox = new SimulatedOutbox({ runs: [RUN], trace, fails, delay: () => this.statementDelay(), problem })
  }

  async run(steps: number): Promise<void> {
    void this.start()
    for (let number = 1; number <= steps; number++) {
      const name = `step ${number}`
      const process = new SimulatedProcess(name)
      // When it happens depends on nothing that may be left out.
      await Bun.sleep(process.random.chance(0.2) ? process.random.next() * 400 : process.random.int(0, 4))
      if (this.faults.takes(name)) time.within(process, () => this.step(number))
    }
    this.trace('world', 'everything heals')
    this.isHealthy = true
    this.mend()
    // What is late or paused goes on.
    await Bun.sleep(Math.max(SLOW_MS_MAX * 3, PAUSE_MS_MAX))
    await this.check()
  }

  /** Ends everything that is still running. */
  end(): void {
    for (const process of this.running) process.isDead = true
  }

  private step(number: number): void {
    const { random } = time
    const pick = random.next()
    if (this.writer === undefined && this.opening === undefined && random.chance(0.3)) void this.start()
    else if (this.reader === undefined && random.chance(0.3)) this.startReader()
    else if (pick < 0.55) void this.append(`call ${number}`)
    else if (pick < 0.75) void this.outbox.step()
    else if (pick < 0.82) this.trouble()
    else if (pick < 0.86) this.pause()
    else if (pick < 0.89) this.kill(this.writer?.process ?? this.opening)
    else if (pick < 0.91) this.powerOff()
    else if (pick < 0.93) this.kill(this.reader)
    else if (pick < 0.95) this.stop()
    else this.expire()
  }

  /** Something is wrong with the disk for a while. */
  private trouble(): void {
    const { disk } = this
    const { random } = time
    const kind = random.pick(['disk full', 'disk slow', 'disk read only'] as const)
    const pages = random.int(0, 8)
    const ms = random.next() * TROUBLE_MS_MAX
    if (!this.faults.happens(kind)) return
    this.trace('disk', kind, kind === 'disk full' ? `${pages} pages are left` : '')
    if (kind === 'disk full') disk.pagesLeft = pages
    else if (kind === 'disk slow') this.isSlow = true
    else disk.isReadOnly = true
    time.after(ms, () => this.mend())
  }

  private mend(): void {
    this.disk.pagesLeft = Number.POSITIVE_INFINITY
    this.disk.isReadOnly = false
    this.isSlow = false
    this.trace('disk', 'is well')
  }

  private pause(): void {
    const { random } = time
    const process = random.chance(0.7) ? this.writer?.process : this.reader
    const ms = random.next() ** 2 * PAUSE_MS_MAX
    if (process === undefined || !this.faults.happens('process paused')) return
    process.pausedUntilMs = time.nowMs + ms
    this.trace(process.name, `is paused for ${Math.round(ms)} ms`)
  }

  /** The machine stops, and all its processes with it. */
  private powerOff(): void {
    if (!this.faults.happens('power fails')) return
    this.trace('machine', 'loses its power')
    for (const process of this.running) this.remove(process)
    this.disk.powerOff()
  }

  private kill(process: SimulatedProcess | undefined): void {
    if (process === undefined || !this.faults.happens('process dies')) return
    this.trace(process.name, 'dies')
    this.remove(process)
  }

  private remove(process: SimulatedProcess): void {
    process.isDead = true
    this.running.delete(process)
    if (this.writer?.process === process) this.writer = undefined
    if (this.reader === process) this.reader = undefined
    if (this.opening === process) this.opening = undefined
  }

  /** Before each call to the disk: everything may end here. @throws Error then */
  private beforeCall(): void {
    const { process } = time
    if (this.running.has(process) && this.chance(0.004)) {
      if (process.random.chance(0.5)) this.powerOff()
      else this.kill(process)
    }
    if (process.isDead) throw new Error('this process has died')
  }

  private begin(name: string): SimulatedProcess {
    const process = new SimulatedProcess(name)
    this.running.add(process)
    return process
  }

  /** A new process opens the log, once all calls of the last one have ended: until then it holds the lock of the directory. */
  private async start(): Promise<void> {
    const process = this.begin(`writer ${++this.writers}`)
    this.opening = process
    while ([...this.disk.calls].some(([{ isDead }, calls]) => isDead && calls > 0)) await Bun.sleep(1)
    if (process.isDead) return
    this.trace(process.name, 'opens the log')
    time.within(process, () => this.open(process)).catch((error) => this.ended(process, error))
  }

  private async open(process: SimulatedProcess): Promise<void> {
    const clock = { now: () => Date.now() + this.days * DAY_MS }
    const sinkPosition = async () => SinkPositionFile.read(DIR)
    const storedSeq = async () => Math.max(0, ...this.table.rows.map(({ seq }) => seq))
    const sql = (async () => [{ seq: 0 }]) as never
    const storeMarks = { checkJournal: async () => undefined }
    const journal = await openLocalJournal({
      ...{
        dir: DIR,
        segmentBytes: this.segmentBytes,
        maxBytes: this.maxBytes,
        keepBytes: this.segmentBytes,
        log,
        clock,
      },
      decideStart: (found) => decideStart(found, { sinkPosition, sql, storedSeq, storeMarks }),
      // Without memory, everything is read from the files.
      ...(process.random.chance(0.5) && { tailBytes: 1 }),
    })
    const position = await SinkPositionFile.open(DIR, undefined, () => time.nowMs)
    const sink = new Sink({ journal, log, position, ...this.table.options, tokenMs: undefined })
    if (process.isDead) return
    this.writer = { process, journal, sink, relay: this.outbox.opened({ process, journal }) }
    this.opening = undefined
    this.trace(process.name, 'has opened the log', `it ends at ${journal.endSeq}`)
    await this.follow(process, journal, journal.startSeq - 1)
  }

  private startReader(): void {
    const process = this.begin(`reader ${++this.readers}`)
    this.reader = process
    const read = async () => {
      const reader = await openLocalReader({ dir: DIR, log })
      this.trace(process.name, 'reads', `from ${this.cursor} on`)
      await this.follow(process, reader, this.cursor, (seq) => {
        this.cursor = seq
      })
    }
    time.within(process, read).catch((error) => this.ended(process, error))
  }

  /** The process that writes the log ends in order. */
  private stop(): void {
    const { writer } = this
    if (writer === undefined) return
    const { process, relay, sink, journal } = writer
    this.writer = undefined
    this.opening = process
    this.trace(process.name, 'stops')
    const end = async () => {
      await relay.stop()
      await sink.stop(0)
      await journal.close()
      this.ended(process, new Error('in order'))
    }
    time.within(process, end).catch((error) => this.ended(process, error))
  }

  private ended(process: SimulatedProcess, { message }: Error): void {
    if (process.isDead) return
    this.trace(process.name, 'ends', message)
    this.remove(process)
  }

  /** Looks at all rows after a position, as they come. */
  private async follow(
    process: SimulatedProcess,
    journal: JournalReader,
    afterSeq: number,
    moved: (seq: number) => void = () => {},
  ): Promise<void> {
    const { name } = process
    let position = afterSeq
    for await (const frame of journal.follow(afterSeq, new AbortController().signal)) {
      if (process.isDead) return
      for (const { id, seq } of rowsOf(Buffer.from(frame.block), KINDS[frame.kind].rows)) this.see(name, seq, id)
      if (lastSeqOf(frame) <= position) this.problem(`${name}: got ${frame.firstSeq} after ${position}`)
      if (frame.firstSeq > position + 1) this.skipped(name, position, frame.firstSeq - 1)
      position = lastSeqOf(frame)
      moved(position)
    }
  }

  /** A position has one row for ever. */
  private see(name: string, seq: number, id: string): void {
    const before = this.seen.get(seq)
    if (before !== undefined && before !== id) this.problem(`${name}: ${seq} is ${id}, and was ${before}`)
    this.seen.set(seq, id)
  }

  /**
   * Only rows that ClickHouse has may be deleted. A gap may also be of rows that nobody was answered for: a power failure may
   * keep a later part of a commit, but not an earlier one, which the journal cannot tell from damage.
   */
  private skipped(name: string, afterSeq: number, throughSeq: number): void {
    const loaded = new Set(this.table.rows.map(({ seq }) => seq))
    const acknowledged = new Set(
      this.calls.flatMap(({ ids, firstSeq }) => (firstSeq === undefined ? [] : ids.map((_, row) => firstSeq + row))),
    )
    for (let seq = afterSeq + 1; seq <= throughSeq; seq++) {
      if (loaded.has(seq) || !acknowledged.has(seq)) continue
      this.problem(`${name}: skips ${seq}, which is not in ClickHouse`)
      return
    }
  }

  private problem(text: string): void {
    this.problems.push(text)
  }

  /** A caller reports rows. @returns whether they were acknowledged */
  private async append(name: string): Promise<boolean> {
    const { writer } = this
    const { random } = time
    if (writer === undefined) return false
    const call: Call = { ids: Array.from({ length: random.int(1, 4) }, (_, row) => `${name} ${row}`) }
    const text = 'x'.repeat(random.next() ** 3 * BYTES_MAX)
    const isEvent = random.chance(0.5)
    this.calls.push(call)
    const { process, journal } = writer
    this.trace(process.name, `is sent ${name}`, `${call.ids.length} rows`)
    const events = call.ids.map(() => ({ type: 'a', payload: { text } }))
    const add = () =>
      isEvent
        ? journal.appendEvents({ ...batchOf(RUN, events), ids: call.ids })
        : journal.appendDeliveries(call.ids.map((id) => deliveryRow(WORKSPACE, { delivery_id: id, response: text })))
    try {
      const { firstSeq } = await time.within(process, () => Bun.sleep(0).then(add))
      if (process.isDead) return false
      this.trace(process.name, `answers ${name}`, `acknowledged at ${firstSeq}`)
      call.firstSeq = firstSeq
      return true
    } catch (error) {
      if (!process.isDead) this.trace(process.name, `answers ${name}`, `refused: ${(error as Error).message}`)
      return false
    }
  }

  private expire(): void {
    const { writer } = this
    if (time.random.chance(0.5)) this.days++
    if (writer === undefined) return
    this.trace(writer.process.name, 'deletes what is older than today')
    const expire = () => writer.journal.expire(Date.now() + this.days * DAY_MS)
    time.within(writer.process, expire).catch(() => {})
  }

  /** Compares what was acknowledged and seen with what there is, once everything is well. */
  private async check(): Promise<void> {
    const within = async (what: string, isSo: () => boolean) => {
      for (const endMs = time.nowMs + SETTLED_WITHIN_MS; !isSo(); await Bun.sleep(50)) {
        if (time.nowMs < endMs) continue
        this.problem(`never: ${what}`)
        return false
      }
      return true
    }
    if (this.writer === undefined && this.opening === undefined) await this.start()
    if (!(await within('the log is opened', () => this.writer !== undefined))) return
    if (this.reader === undefined) this.startReader()
    const lastRow = async () => {
      for (let tries = 1; !(await this.append(`last call ${tries}`)); tries++) await Bun.sleep(500)
      isAcknowledged = true
    }
    let isAcknowledged = false
    void lastRow()
    await within('a row is acknowledged', () => isAcknowledged)
    await within('the outbox is empty', () => this.outbox.isDone())
    const { journal, sink } = this.writer!
    await within('everything is in ClickHouse', () => sink.loadedSeq() === journal.endSeq)
    await within('the reader is at the end', () => this.cursor === journal.endSeq)
    for (const { afterSeq, throughSeq } of journal.gaps) this.skipped('the list of gaps', afterSeq, throughSeq)
    const at = new Map<string, number>()
    for (const { id, seq } of this.table.rows) {
      if (at.has(id)) this.problem(`${id}: twice in ClickHouse, at ${at.get(id)} and ${seq}`)
      at.set(id, seq)
      this.see('ClickHouse', seq, id)
    }
    for (const [seq, id] of this.seen) if (at.get(id) !== seq) this.problem(`${id}: seen at ${seq}, and gone`)
    for (const { ids, firstSeq } of this.calls) {
      const seqs = ids.map((id) => at.get(id))
      const first = firstSeq ?? seqs[0]
      const isRight = seqs.every((seq, row) => seq === (first === undefined ? undefined : first + row))
      if (!isRight)
        this.problem(`${ids[0]}: ${firstSeq === undefined ? 'refused' : `acknowledged at ${firstSeq}`}, is at ${seqs}`)
    }
    this.outbox.check(this.table.rows.toSorted((one, other) => one.seq - other.seq))
  }

  private chance(probability: number): boolean {
    return !this.isHealthy && time.random.chance(probability * this.intensity)
  }

  private fails(probability: number, who: string, kind: FaultKind): boolean {
    if (!this.chance(probability) || !this.faults.happens(kind)) return false
    this.trace(who, kind)
    return true
  }

  /** What fails once often fails again at once. */
  private failsAgain(kind: FaultKind): boolean {
    const isSoon = time.nowMs - this.failedAtMs < FAILS_AGAIN_MS
    if (!this.fails(isSoon ? 0.2 : 0.01, 'disk', kind)) return false
    this.failedAtMs = time.nowMs
    return true
  }

  private statementDelay(): Promise<void> {
    if (this.fails(0.03, 'Postgres', 'statement late')) return Bun.sleep(time.random.next() * LATE_MS_MAX)
    return this.delay()
  }

  private delay(): Promise<void> {
    return Bun.sleep(time.random.next() * (time.random.chance(0.9) ? 3 : 60))
  }

  private diskDelay(isSync: boolean): Promise<void> {
    const isSlow = this.isSlow && isSync
    return Bun.sleep(time.random.next() * (isSlow ? SLOW_MS_MAX : 0.5))
  }
}
