import type { RunStore } from '../../../src/activity/runs/store.ts'
import type { TaskStore } from '../../../src/activity/tasks/store.ts'
import { ApiError } from '../../../src/base/errors.ts'
import { createLog } from '../../../src/base/log.ts'
import { Loops } from '../../../src/base/loops.ts'
import { Idempotency } from '../../../src/stores/idempotency/store.ts'
import { unavailableOf } from '../../../src/stores/postgres/connect.ts'
import { KeyRing } from '../../../src/tenants/keys/key-ring.ts'
import { KeyStore } from '../../../src/tenants/keys/store.ts'
import { storesOn } from '../../support/runs.ts'
import { SimulatedProcess, time } from '../virtual-time.ts'
import { Client, type ConnectionFaults } from './client.ts'
import type { Server } from './server.ts'
import type { Refusal } from './world.ts'

/** What a process tells its caller: an answer for good, or an error of which there should be none. */
type Told<Answer> = { readonly value: Answer | Refusal } | { readonly internal: string }

const log = createLog('silent')
const clock = { now: () => Date.now() }

/** The last use of keys is not written: it would be a third to wait for the row of a key, and Postgres lets any go on first. */
class NoLoops extends Loops {
  override repeat() {
    return async () => {}
  }
}

/** A process of the service. */
export class Node {
  readonly process: SimulatedProcess
  readonly instanceId = crypto.randomUUID()
  readonly runs: RunStore
  readonly tasks: TaskStore
  readonly ring: KeyRing
  readonly keys: KeyStore
  readonly idempotency: Idempotency
  /** Resolves once it takes requests; rejects if it cannot start. */
  readonly started: Promise<void>
  /** What it has been asked for, and has not answered. */
  readonly asked = new Set<string>()
  private readonly client: Client
  private readonly dead = Promise.withResolvers<undefined>()

  /** @param isShared it looks at the others, and executes what they have left */
  constructor(
    readonly name: string,
    server: Server,
    faults: ConnectionFaults,
    isShared: boolean,
  ) {
    this.process = new SimulatedProcess(name)
    this.client = new Client(server, this.process, faults)
    const { instanceId } = this
    const { sql } = this.client
    const { runs, tasks } = storesOn(sql)
    this.runs = runs
    this.tasks = tasks
    const lease = { exclusive: false, isNode: true, times: { sharedBeatMs: BEAT_MS }, loops: new NoLoops(log) }
    this.ring = new KeyRing({ sql, heartbeat: sql, clock, log, instanceId, ...lease })
    this.keys = new KeyStore({ sql, ring: this.ring, clock })
    const gone = () => this.ring.gone()
    this.idempotency = new Idempotency({ sql, clock, expiryClock: clock, log, instanceId, gone })
    this.started = time.within(this.process, async () => {
      if (isShared) await this.ring.start()
    })
  }

  die(): void {
    this.process.isDead = true
    this.client.die()
    this.dead.resolve(undefined)
  }

  /** @returns undefined when there is no answer, or one that asks to try again */
  async ask<Answer>(
    what: string,
    ask: (node: Node) => Promise<Answer>,
    patienceMs: number,
  ): Promise<Told<Answer> | undefined> {
    const answer = time.within(this.process, () => Bun.sleep(0).then(() => this.started.then(() => ask(this))))
    this.asked.add(what)
    void answer.catch(() => {}).finally(() => this.asked.delete(what))
    const told = answer.then((value) => ({ value }), toldOf)
    return Promise.race([told, this.dead.promise, Bun.sleep(patienceMs).then(() => undefined)])
  }
}

/** Fewer than in life: each is two statements. */
const BEAT_MS = 500

/** As the service answers an error. */
function toldOf(error: unknown): Told<never> | undefined {
  const known = error instanceof ApiError ? error : unavailableOf(error)
  if (known === null) return { internal: `${(error as Error).stack}` }
  if (known.code === 'UNAVAILABLE') return undefined
  return { value: { refused: known.reason ?? known.code, message: known.message } }
}
