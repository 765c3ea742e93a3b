import { AsyncLocalStorage } from 'node:async_hooks'
import { createRandom, type Random, randomOf } from '../../src/cli/demo/random.ts'

/** When the virtual clock starts, Unix milliseconds. */
const START_MS = Date.UTC(2026, 0, 2)

interface Task {
  readonly id: number
  readonly atMs: number
  /** Decides between tasks of the same time. */
  readonly order: number
  readonly run: () => void
  readonly process: SimulatedProcess
}

/** Chance depends on the seed, on who draws, on which of these parts of time it is, and on how often they have drawn in it. */
export const DRAWN_MS = 100

/**
 * A process of the simulated world, or something else that acts in it. What happens to one changes nothing of what others
 * draw, and of what it draws itself a moment later.
 */
export class SimulatedProcess {
  /** While it is paused, time goes on, and its tasks wait. */
  pausedUntilMs = 0
  /** It does nothing any more. */
  isDead = false
  readonly random = this.draws('')
  /** Decides between tasks of the same time. */
  readonly order = this.draws(' order')
  private serving: SimulatedProcess | undefined

  constructor(
    readonly name: string,
    private readonly isServer = false,
  ) {}

  /** The servers that it calls, as far as they serve it: they go on while it is paused or dead. */
  get servers(): SimulatedProcess {
    if (this.isServer) return this
    this.serving ??= new SimulatedProcess(`servers of ${this.name}`, true)
    return this.serving
  }

  private draws(use: string): Random {
    let part = -1
    let drawn: Random
    return randomOf(() => {
      const now = Math.floor(time.nowMs / DRAWN_MS)
      if (now !== part) drawn = createRandom(Bun.hash.xxHash32(`${this.name}${use} ${now}`, time.seed))
      part = now
      return drawn.next()
    })
  }
}

/** A timer as callers get it: an object, as in Node, whose `id` cancels it. */
interface Timer {
  readonly id: number
  unref(): void
  ref(): void
  [Symbol.toPrimitive](): number
}

/**
 * A clock that moves only when nothing else is left to do, and then to the next timer. It takes the place of the real one
 * for everything in this process, so that a second of waiting costs nothing, and one seed decides the order of everything.
 * That holds as long as nothing does real input or output, or uses another thread.
 */
class VirtualTime {
  nowMs = 0
  /** A number that depends on every step: two runs with the same one took the same steps. */
  fingerprint = 0
  private tasks: Task[] = []
  private ids = 0
  private uuids = 0
  private outsiders = 0
  private outsideWork: Promise<unknown> = Promise.resolve()
  seed = 0
  private world = new SimulatedProcess('world')
  private readonly turn = turnOf(globalThis.setImmediate)
  private readonly processes = new AsyncLocalStorage<SimulatedProcess>()

  /** Begins again at time 0. */
  reset(seed: number): void {
    Object.assign(this, { nowMs: 0, fingerprint: 0, tasks: [], ids: 0, uuids: 0, seed })
    this.world = new SimulatedProcess('world')
  }

  /** The process that runs now. */
  get process(): SimulatedProcess {
    return this.processes.getStore() ?? this.world
  }

  /** What the process draws that runs now. */
  get random(): Random {
    return this.process.random
  }

  /** Runs `run` after `ms`. @returns the id that {@link cancel} takes */
  after(ms: number, run: () => void, id = ++this.ids): number {
    const atMs = this.nowMs + Math.max(0, ms || 0)
    const { process } = this
    this.tasks.push({ id, atMs, order: process.order.next(), run, process })
    return id
  }

  /** Runs something, and all that follows from it, as a part of this process. */
  within<Result>(process: SimulatedProcess, run: () => Result): Result {
    return this.processes.run(process, run)
  }

  /**
   * A call to a server, which begins at once. The server goes on while the process that calls it is paused, and the answer
   * waits until that process goes on, too.
   */
  async call<Answer>(serve: () => Promise<Answer>): Promise<Answer> {
    const process = this.processes.getStore()
    if (process === undefined) return serve()
    try {
      return await this.within(process.servers, serve)
    } finally {
      await new Promise<void>((resolve) => this.after(0, resolve))
    }
  }

  /** Does something real, such as input or output, one after the other. The clock stands still meanwhile. */
  outside<Result>(work: () => Promise<Result>): Promise<Result> {
    this.outsiders++
    const done = this.outsideWork.then(work)
    this.outsideWork = done.then(
      () => this.outsiders--,
      () => this.outsiders--,
    )
    return done
  }

  /** A function for servers to call, which runs as a part of the process that is given here. */
  heardBy<Args extends readonly unknown[]>(listen: (...args: Args) => void): (...args: Args) => void {
    const process = this.processes.getStore()
    if (process === undefined) return listen
    return (...args) => void this.within(process, () => this.after(0, () => listen(...args)))
  }

  cancel(id: number): void {
    this.tasks = this.tasks.filter((task) => task.id !== id)
  }

  /** Runs one task after the other until `isOver`, or until `maxMs` have passed. @throws Error when nothing is left to run */
  async runUntil(isOver: () => boolean, maxMs: number): Promise<void> {
    const endMs = this.nowMs + maxMs
    while (!isOver() && this.nowMs < endMs) {
      // Everything that can go on without waiting does so first.
      await this.turn()
      while (this.outsiders > 0) await this.outsideWork.then(() => this.turn())
      if (isOver()) return
      const next = this.takeNext()
      if (next === undefined) throw new Error('deadlock: nothing will ever happen any more')
      if (next.process.isDead) continue
      this.nowMs = Math.max(this.nowMs, next.atMs)
      if (next.process.pausedUntilMs > this.nowMs) {
        this.tasks.push({ ...next, atMs: next.process.pausedUntilMs })
        continue
      }
      this.fingerprint = (Math.imul(this.fingerprint, 31) + Math.round(this.nowMs * 1_000)) | 0
      this.within(next.process, next.run)
    }
  }

  private takeNext(): Task | undefined {
    const { tasks } = this
    let next = 0
    for (let index = 1; index < tasks.length; index++) {
      const [a, b] = [tasks[index]!, tasks[next]!]
      if (a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order)) next = index
    }
    return tasks.splice(next, 1)[0]
  }

  /**
   * Replaces the clocks, timers and other sources of chance of this process. Call before the code under test is imported.
   * @returns a function that puts them back
   */
  install(): () => void {
    const { setTimeout, setImmediate, setInterval, clearTimeout, clearImmediate, clearInterval } = globalThis
    const timers = { setTimeout, setImmediate, setInterval, clearTimeout, clearImmediate, clearInterval }
    const real = [
      [globalThis, timers],
      [performance, { now: performance.now }],
      [Math, { random: Math.random }],
      [Date, { now: Date.now }],
      [Bun, { sleep: Bun.sleep, zstdCompress: Bun.zstdCompress, randomUUIDv7: Bun.randomUUIDv7 }],
      [crypto, { randomUUID: crypto.randomUUID }],
    ] as const
    const timerOf = (id: number): Timer => ({ id, unref() {}, ref() {}, [Symbol.toPrimitive]: () => id })
    const cancel = (timer: Timer | number | undefined) => {
      if (timer !== undefined && timer !== null) this.cancel(typeof timer === 'number' ? timer : timer.id)
    }
    const repeat = (id: number, ms: number, run: () => void) => {
      this.after(
        ms,
        () => {
          repeat(id, ms, run)
          run()
        },
        id,
      )
    }
    Object.assign(globalThis, {
      setTimeout: (run: (...args: unknown[]) => void, ms: number, ...args: unknown[]) =>
        timerOf(this.after(ms, () => run(...args))),
      setImmediate: (run: (...args: unknown[]) => void, ...args: unknown[]) =>
        timerOf(this.after(0, () => run(...args))),
      setInterval: (run: () => void, ms: number) => {
        const id = ++this.ids
        repeat(id, ms, run)
        return timerOf(id)
      },
      clearTimeout: cancel,
      clearImmediate: cancel,
      clearInterval: cancel,
    })
    performance.now = () => this.nowMs
    Math.random = () => this.random.next()
    Date.now = () => START_MS + Math.floor(this.nowMs)
    Object.assign(Bun, {
      sleep: (ms: number) => new Promise<void>((resolve) => this.after(ms, resolve)),
      // The asynchronous one uses a thread.
      zstdCompress: async (bytes: Uint8Array<ArrayBuffer>, options: { level?: number }) =>
        Bun.zstdCompressSync(bytes, options),
      randomUUIDv7: () => this.uuid(),
    })
    Object.assign(crypto, { randomUUID: () => this.uuid() })
    return () => {
      for (const [owner, members] of real) Object.assign(owner, members)
    }
  }

  private uuid(): string {
    const number = ++this.uuids + this.random.int(0, 999_999) * 1_000
    return `00000000-0000-7000-8000-${String(number).padStart(12, '0')}`
  }
}

function turnOf(real: typeof setImmediate): () => Promise<void> {
  return () => new Promise<void>((resolve) => real(resolve))
}

/** The only one of this process. */
export const time = new VirtualTime()
