import type { Sql, TransactionSql } from '../../../src/stores/postgres/connect.ts'
import { type SimulatedProcess, time } from '../virtual-time.ts'
import type { Server, Session } from './server.ts'

/** What becomes of a statement. */
export type Fate =
  | 'answered'
  /** The connection breaks before Postgres gets it. */
  | 'lost'
  /** The connection breaks, and Postgres gets it later. */
  | 'late'
  /** It is executed, and the connection breaks before the answer arrives. */
  | 'unanswered'
  /** Its answer is late. */
  | 'answered late'

/** What goes wrong between a process and Postgres, and how long things take. */
export interface ConnectionFaults {
  delay(): Promise<void>
  fateOf(statement: string): Fate
  lateMs(): number
  /** How long the commit of a single statement takes; 0: no time. */
  commitMs(): number
}

/** As the driver has it. */
interface Query {
  readonly tagged: boolean
  readonly strings: TemplateStringsArray
  readonly args: never[]
  readonly options: object
  handler: (query: Query) => void
  resolve(answer: unknown): void
  reject(error: unknown): void
}

type Ask = (sql: Sql) => PromiseLike<unknown>

const TRANSACTION_FAILED = '25P02'
/** As `idle_in_transaction_session_timeout`. */
const IDLE_IN_TRANSACTION_MS = 10_000

/** The connections of one process to Postgres: they take time, and break. Statements are built and executed by the real driver. */
export class Client {
  readonly sql: Sql
  private readonly transactions = new Set<Transaction>()

  constructor(
    readonly server: Server,
    private readonly process: SimulatedProcess,
    private readonly faults: ConnectionFaults,
  ) {
    const one = (statement: string, ask: Ask) => this.exchange(statement, () => this.autocommit(ask))
    this.sql = Object.assign(front(server.template, one), {
      begin: (work: (tx: TransactionSql) => Promise<unknown>) => this.begin(work),
      end: async () => {},
    })
  }

  /** The process has died, and its connections with it. */
  die(): void {
    for (const each of this.transactions) each.break(Promise.resolve())
  }

  /** While its commit takes time, other statements wait for its locks, and see what was before it. */
  private async autocommit(ask: Ask): Promise<unknown> {
    const { server } = this
    const session = server.take()
    try {
      const commitMs = this.faults.commitMs()
      if (commitMs === 0) return await server.run(session, ask)
      const answer = server.run(session, (sql) =>
        Promise.all([sql.unsafe('begin'), ask(sql)]).then(([, result]) => result),
      )
      await answer.catch(() => {})
      await Bun.sleep(commitMs)
      await server.run(session, (sql) => sql.unsafe('commit'))
      return await answer
    } finally {
      server.release(session)
    }
  }

  /**
   * A statement travels to Postgres, and its answer back.
   * @param onBroken is told that the connection has broken, and when Postgres will have got everything
   */
  exchange(statement: string, serve: () => Promise<unknown>, onBroken = (_: Promise<unknown>) => {}): Promise<unknown> {
    const { faults, process } = this
    return time.call(async () => {
      await faults.delay()
      if (process.isDead) return new Promise<never>(() => {})
      const fate = faults.fateOf(statement)
      if (fate === 'lost' || fate === 'late') {
        const later = Bun.sleep(faults.lateMs())
        onBroken(fate === 'lost' ? later : later.then(serve).catch(() => {}))
        throw broken()
      }
      const answer = serve()
      await answer.catch(() => {})
      if (fate === 'unanswered') {
        onBroken(Promise.resolve())
        throw broken()
      }
      await (fate === 'answered late' ? Bun.sleep(faults.lateMs()) : faults.delay())
      return answer
    })
  }

  /** As the driver's `begin`. */
  private async begin<Result>(work: (tx: TransactionSql) => Promise<Result>): Promise<Result> {
    const transaction = new Transaction(this, this.server)
    this.transactions.add(transaction)
    try {
      await transaction.ask('begin', (sql) => sql.unsafe('begin'))
      let result: Result
      try {
        result = await work(front(this.server.template, (...asked) => transaction.ask(...asked)) as never)
        if (transaction.failure !== undefined) throw transaction.failure
      } catch (error) {
        await transaction.ask('rollback', (sql) => sql.unsafe('rollback'))
        throw (error as { code?: unknown }).code === TRANSACTION_FAILED ? transaction.failure : error
      }
      await transaction.ask('commit', (sql) => sql.unsafe('commit'))
      return result
    } finally {
      transaction.end()
      this.transactions.delete(transaction)
    }
  }
}

/** A transaction has a connection of its own. Whatever happens to it, Postgres ends it in the end. */
class Transaction {
  /** The first failure of a statement, which also fails a transaction that does not care. */
  failure: unknown
  private readonly session: Session
  private last: Promise<unknown> = Promise.resolve()
  private isBroken = false
  private isOver = false
  private idle = 0

  constructor(
    private readonly client: Client,
    private readonly server: Server,
  ) {
    this.session = server.take()
  }

  /** Statements are executed one after the other. */
  ask(statement: string, ask: Ask): Promise<unknown> {
    const answer = this.last.then(() => {
      if (this.isBroken) throw broken()
      return this.client.exchange(
        statement,
        () => this.serve(ask),
        (later) => this.break(later),
      )
    })
    this.last = answer.catch((error) => {
      this.failure ??= error
    })
    return answer
  }

  /** Its connection is broken. @param later when Postgres has got all statements, and notices it */
  break(later: Promise<unknown>): void {
    if (this.isBroken || this.isOver) return
    this.isBroken = true
    const rollback = () => this.server.run(this.session, (sql) => sql.unsafe('rollback'))
    void later.then(rollback).finally(() => this.release())
  }

  /** Its last statement has been answered. A broken one ends later. */
  end(): void {
    if (!this.isBroken) this.release()
  }

  private release(): void {
    this.isOver = true
    time.cancel(this.idle)
    this.server.release(this.session)
  }

  private async serve(ask: Ask): Promise<unknown> {
    if (this.isOver) throw broken()
    time.cancel(this.idle)
    try {
      return await this.server.run(this.session, ask)
    } finally {
      if (!this.isBroken) this.idle = time.after(IDLE_IN_TRANSACTION_MS, () => this.break(Promise.resolve()))
    }
  }
}

/** What looks like the driver, and passes its statements to `run` instead. */
function front(template: Sql, run: (statement: string, ask: Ask) => Promise<unknown>): Sql {
  const handler = (query: Query) => {
    const { tagged, strings, args, options } = query
    const ask = (sql: Sql) => (tagged ? sql(strings, ...args) : sql.unsafe(strings[0]!, args, options))
    run(nameOf(query), ask as Ask).then(query.resolve, query.reject)
  }
  // Anything else is a part of a statement.
  const redirect = (made: unknown) => (made instanceof Promise ? Object.assign(made, { handler }) : made)
  const tagged = (...given: Parameters<Sql>) => redirect(template(...given))
  const unsafe = (...given: Parameters<Sql['unsafe']>) => redirect(template.unsafe(...given))
  return Object.assign(tagged, { unsafe, options: template.options }) as unknown as Sql
}

/** What a statement does, for people. */
function nameOf({ strings }: Query): string {
  const found = /\b(?:insert into|update|delete from|lock table|advisory_\w+) *(?!set\b)\w*/.exec(strings.join(' ? '))
  return found?.[0] ?? /\bfrom (?!unnest)\w+/.exec(strings.join(' ? '))?.[0].replace('from', 'select from') ?? 'select'
}

function broken(): Error {
  return Object.assign(new Error('write CONNECTION_CLOSED'), { code: 'CONNECTION_CLOSED' })
}
