import postgres from 'postgres'
import { createLog } from '../../../src/base/log.ts'
import { connectPostgres, type Sql } from '../../../src/stores/postgres/connect.ts'
import { enforceTransitions } from '../../support/hosted-transitions.ts'
import { startPostgresTemplate } from '../../support/stores.ts'
import { time } from '../virtual-time.ts'

/** A connection to the real server. */
export interface Session {
  readonly sql: Sql
  readonly pid: number
}

/** A statement that the server has got, and whose answer has not been passed on. */
interface Running {
  readonly pid: number
  /** Resolves when the server has answered. */
  readonly answered: Promise<unknown>
  /** Passes the answer on; undefined until there is one. */
  pass?: () => void
}

/** As many as the worlds use at once. */
const SESSIONS = 40
/** A statement without an answer for so long, in real time, may be waiting for a lock. */
const LOOK_AFTER_MS = 3
/** As `statement_timeout`, in virtual time. */
const STATEMENT_TIMEOUT_MS = 10_000
const DEADLOCK_TIMEOUT_MS = 10
const VACUUM_EVERY = 50
/** Not the virtual one. */
const { setTimeout: realTimeout } = globalThis

/**
 * The real Postgres, with one database for all worlds of this process. The virtual clock stands still until each statement
 * has its answer, or waits for a lock: so its answers come in the same order each time.
 */
export class Server {
  private readonly running = new Set<Running>()
  private readonly taken = new Set<Session>()
  private readonly pids: ReadonlySet<number>
  private worlds = 0

  private constructor(
    /** For the world itself: its statements are no part of what is simulated. */
    private readonly own: Sql,
    private readonly sessions: readonly Session[],
    private readonly cleanUp: string,
    private readonly vacuum: string,
  ) {
    this.pids = new Set(sessions.map(({ pid }) => pid))
  }

  /** Opens all connections. Call while time is real. */
  static async open(): Promise<Server> {
    const url = await startPostgresTemplate()
    await enforceTransitions(url)
    const open = async () => {
      const { options } = connectPostgres(url, { log: createLog('error'), max: 1 })
      const never = { statement_timeout: 0, idle_in_transaction_session_timeout: 0, idle_session_timeout: 0 }
      const connection = { ...options.connection, ...never, deadlock_timeout: DEADLOCK_TIMEOUT_MS }
      const sql = postgres({ ...options, connection, idle_timeout: null } as never) as unknown as Sql
      const [row] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`
      return { sql, pid: row!.pid }
    }
    const [own, ...sessions] = await Promise.all(Array.from({ length: SESSIONS + 1 }, open))
    const { sql } = own!
    const tables = await sql<{ name: string }[]>`
      select table_name as name from information_schema.tables
      where table_schema = 'public' and table_type = 'BASE TABLE' and table_name <> 'migrations' order by 1`
    const sequences = await sql<{ name: string }[]>`
      select sequencename as name from pg_sequences where schemaname = 'public' order by 1`
    // Without the triggers that check references, which would demand an order.
    const cleanUp = `set session_replication_role = replica;
      ${tables.map(({ name }) => `delete from ${name};`).join('\n')}
      ${sequences.map(({ name }) => `alter sequence ${name} restart;`).join('\n')}
      set session_replication_role = origin`
    return new Server(sql, sessions, cleanUp, `vacuum ${tables.map(({ name }) => name).join(', ')}`)
  }

  /** Builds statements; it runs none. */
  get template(): Sql {
    return this.own
  }

  take(): Session {
    const session = this.sessions.find((each) => !this.taken.has(each))
    if (session === undefined) throw new Error('the simulated world has too many connections')
    this.taken.add(session)
    return session
  }

  release(session: Session): void {
    this.taken.delete(session)
  }

  /** Runs a statement in a session. Its answer may come after those of others, if it has to wait for a lock. */
  run<Answer>(session: Session, ask: (sql: Sql) => PromiseLike<Answer>): Promise<Answer> {
    const timer = time.after(STATEMENT_TIMEOUT_MS, () => void this.cancel(session))
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    void time.outside(async () => {
      const answer = Promise.resolve(ask(session.sql))
      const running: Running = { pid: session.pid, answered: answer.catch(() => {}) }
      answer.then(
        (value) => {
          running.pass = () => resolve(value)
        },
        (error) => {
          running.pass = () => reject(error)
        },
      )
      this.running.add(running)
      await this.untilStill()
    })
    return promise.finally(() => time.cancel(timer))
  }

  /** Reads what the world has left in the database. */
  read<Answer>(ask: (sql: Sql) => PromiseLike<Answer>): Promise<Answer> {
    return time.outside(async () => ask(this.own))
  }

  /** Ends all statements and transactions, and deletes all rows, for the next world. */
  async reset(): Promise<void> {
    await time.outside(async () => {
      if (this.running.size > 0)
        await this
          .own`select pg_cancel_backend(pid) from unnest(${[...this.running].map(({ pid }) => pid)}::int[]) as pid`
      await Promise.all([...this.running].map(({ answered }) => answered))
      this.running.clear()
      await Promise.all([...this.taken].map(({ sql }) => sql.unsafe('rollback')))
      this.taken.clear()
      await this.own.unsafe(this.cleanUp)
      if (++this.worlds % VACUUM_EVERY === 0) await this.own.unsafe(this.vacuum)
    })
  }

  /** Waits until each statement has its answer or waits for a lock; then passes the answers on, in the order of the statements. */
  private async untilStill(): Promise<void> {
    for (;;) {
      const open = [...this.running].filter(({ pass }) => pass === undefined)
      if (open.length === 0) break
      await Promise.race([
        ...open.map(({ answered }) => answered),
        new Promise((done) => realTimeout(done, LOOK_AFTER_MS)),
      ])
      if (open.every(({ pass }) => pass === undefined) && (await this.areAllWaiting(open))) break
    }
    for (const each of [...this.running]) {
      if (each.pass === undefined) continue
      this.running.delete(each)
      each.pass()
    }
  }

  /** Whether all of these statements wait, directly or not, for sessions that do nothing: then none goes on by itself. */
  private async areAllWaiting(open: readonly Running[]): Promise<boolean> {
    const rows = await this.own<{ pid: number; blockers: number[] }[]>`
      select pid, pg_blocking_pids(pid) as blockers from unnest(${open.map(({ pid }) => pid)}::int[]) as pid`
    // A worker of Postgres itself gives way at once.
    if (rows.some(({ blockers }) => blockers.some((blocker) => !this.pids.has(blocker)))) return false
    const waiting = new Map(rows.map(({ pid, blockers }) => [pid, blockers]))
    for (let before = -1; before !== waiting.size; ) {
      before = waiting.size
      for (const [pid, blockers] of waiting)
        if (blockers.length > 0 && !blockers.some((blocker) => waiting.has(blocker))) waiting.delete(pid)
    }
    return waiting.size === 0
  }

  private cancel({ pid }: Session): Promise<void> {
    return time.outside(async () => {
      await this.own`select pg_cancel_backend(${pid})`
      await this.untilStill()
    })
  }
}
