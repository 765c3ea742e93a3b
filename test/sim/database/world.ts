import { newCaller } from '../../support/runs.ts'
import { type FaultKind, Faults, type Trace } from '../faults.ts'
import type { Case } from '../story.ts'
import { SimulatedProcess, time } from '../virtual-time.ts'
import type { Outcome } from '../world.ts'
import type { ConnectionFaults } from './client.ts'
import { KeysWork } from './keys.ts'
import { Node } from './node.ts'
import { RunsWork } from './runs.ts'
import type { Server } from './server.ts'

/** In virtual time. */
const WORLD_MS_MAX = 30 * 60_000
const LATE_MS_MAX = 9_000
const COMMIT_MS_MAX = 30
const PAUSE_MS_MAX = 20_000
const STEP_MS_MAX = 300
const NODES = 2
const RETRY_MS = 200
/** A caller does not wait for ever for an answer. */
const PATIENCE_MS = 6_000

/** A kind of work that callers ask for, and what must hold of it. */
export interface Work {
  begin?(): Promise<void>
  /** A caller asks for something. */
  step(): void
  /** Compares what callers were told with what is stored. */
  check(): Promise<void>
}

/** What a kind of work shares with the rest of the world. */
export interface WorkContext {
  readonly server: Server
  problem(text: string): void
  /**
   * Asks for something, at one process after the other, until one answers for good.
   * @param ask does the work in a process @param told takes the answer
   * @param isAlone no process is asked for the same twice at once: of several that wait for a row, Postgres chooses any
   */
  call<Answer>(what: string, ask: (node: Node) => Promise<Answer>, told: Told<Answer>, isAlone?: boolean): void
}

/** Takes what a caller was told. @param askedMs when it asked that process @returns it, for people */
type Told<Answer> = (answer: Answer | Refusal, askedMs: number) => string

/** An error that a caller is told. */
export interface Refusal {
  readonly refused: string
  readonly message: string
}

/** Two processes on one database, their callers, and Postgres itself, behind connections that break. */
export async function runDatabaseWorld({ seed, steps, without }: Case, trace: Trace, server: Server): Promise<Outcome> {
  time.reset(seed)
  const faults = new Faults(without)
  const world = new World(faults, trace, server)
  const { problems } = world
  let isOver = false
  const broke = (error: Error) => void problems.push(`broke: ${error.stack}`)
  world
    .run(steps)
    .catch(broke)
    .finally(() => {
      isOver = true
    })
  await time.runUntil(() => isOver, WORLD_MS_MAX).catch(broke)
  if (!isOver) problems.push('never ends')
  world.end()
  const { fingerprint } = time
  await server.reset()
  const { happened, leftOut } = faults
  return { problems, fingerprint, happened, leftOut }
}

class World {
  readonly problems: string[] = []
  private readonly intensity: number
  private readonly nodes: Node[] = []
  private work: Work | undefined
  /** Processes look at each other. */
  private isShared = false
  private readonly pending: Promise<void>[] = []
  private isHealthy = false
  private calls = 0
  private started = 0

  constructor(
    private readonly faults: Faults,
    private readonly trace: Trace,
    private readonly server: Server,
  ) {
    this.intensity = time.random.chance(0.3) ? 0.3 : 3
  }

  async run(steps: number): Promise<void> {
    const caller = await this.server.read(newCaller)
    const context: WorkContext = {
      server: this.server,
      problem: (text) => void this.problems.push(text),
      call: (...call) => void this.pending.push(this.call(...call)),
    }
    // One of them, so that a world takes little time.
    const work = time.random.pick([RunsWork, KeysWork])
    this.work = new work(context, caller)
    this.isShared = work !== RunsWork
    await this.work.begin?.()
    for (let index = 0; index < NODES; index++) this.start(index)
    for (let number = 1; number <= steps; number++) {
      const name = `step ${number}`
      const process = new SimulatedProcess(name)
      // When it happens depends on nothing that may be left out.
      await Bun.sleep(process.random.next() ** 2 * STEP_MS_MAX)
      if (this.faults.takes(name)) time.within(process, () => this.step())
    }
    this.trace('world', 'everything heals')
    this.isHealthy = true
    for (const { process } of this.nodes) process.pausedUntilMs = 0
    await Promise.all(this.pending)
    await Bun.sleep(LATE_MS_MAX * 2)
    await this.work!.check()
    await Promise.all(this.pending)
  }

  private step(): void {
    const pick = time.random.next()
    if (pick < 0.9) this.work!.step()
    else if (pick < 0.96) this.pause()
    else this.kill()
  }

  /** Ends everything that is still running. */
  end(): void {
    for (const node of this.nodes) node.process.isDead = true
  }

  private start(index: number): void {
    const name = `process ${++this.started}`
    this.trace(name, 'starts')
    const node = new Node(name, this.server, this.connectionFaults(name), this.isShared)
    this.nodes[index] = node
    node.started.catch((error: Error) => {
      this.trace(name, 'cannot start', error.message)
      node.die()
      this.start(index)
    })
  }

  private pause(): void {
    const node = time.random.pick(this.nodes)
    const ms = time.random.next() ** 2 * PAUSE_MS_MAX
    if (!this.faults.happens('process paused')) return
    node.process.pausedUntilMs = time.nowMs + ms
    this.trace(node.name, `is paused for ${Math.round(ms)} ms`)
  }

  private kill(): void {
    const index = time.random.int(0, NODES - 1)
    if (!this.faults.happens('process dies')) return
    const node = this.nodes[index]!
    this.trace(node.name, 'dies')
    node.die()
    this.start(index)
  }

  /** Tries again, anywhere, as long as the answer is that it should. */
  private async call<Answer>(
    what: string,
    ask: (node: Node) => Promise<Answer>,
    told: Told<Answer>,
    isAlone = false,
  ): Promise<void> {
    const caller = `caller ${++this.calls}`
    for (;;) {
      const node = time.random.pick(this.nodes)
      if (isAlone && node.asked.has(what)) {
        await Bun.sleep(RETRY_MS)
        continue
      }
      this.trace(caller, `asks ${node.name}: ${what}`)
      const askedMs = time.nowMs
      const answer = await node.ask(what, ask, PATIENCE_MS)
      if (answer !== undefined && !('internal' in answer)) {
        this.trace(caller, `is told: ${what}`, told(answer.value, askedMs))
        return
      }
      if (answer !== undefined) this.problems.push(`${what}: internal error: ${answer.internal}`)
      await Bun.sleep(time.random.next() * RETRY_MS)
    }
  }

  private connectionFaults(name: string): ConnectionFaults {
    const fates = { lost: 0.01, late: 0.005, unanswered: 0.01, 'answered late': 0.01 } as const
    const kinds = {
      lost: 'statement lost',
      late: 'statement late',
      unanswered: 'statement unanswered',
      'answered late': 'statement answered late',
    } as const satisfies Record<keyof typeof fates, FaultKind>
    return {
      delay: () => Bun.sleep(time.random.next() * (time.random.chance(0.9) ? 3 : 60)),
      commitMs: () => (time.random.chance(0.2) ? time.random.next() * COMMIT_MS_MAX : 0),
      lateMs: () => time.random.next() ** 2 * LATE_MS_MAX,
      fateOf: (statement) => {
        const names = Object.keys(fates) as (keyof typeof fates)[]
        const fate = this.isHealthy ? undefined : names.find((each) => time.random.chance(fates[each] * this.intensity))
        const happens = fate !== undefined && this.faults.happens(kinds[fate])
        this.trace(name, statement, happens ? fate : '')
        return happens ? fate : 'answered'
      },
    }
  }
}
