import { quote } from '../quoting.ts'
import type { EngineConnection } from './addon.ts'
import type { Job } from './session.ts'

/** A session that only reads, so that no statement can change its settings or its database. */
interface ReadSession {
  readonly connection: EngineConnection
  /**
   * The session's `log_comment`, by which its statement is killed. Not the id of its first statement: a late KILL of that
   * would end a later one.
   */
  readonly id: string
}

/** A session that runs a statement, or is being opened for it. */
interface BusySession extends Pick<ReadSession, 'id'> {
  /** Its statement was killed. It is not used again, because a late KILL would end the next statement. */
  isKilled: boolean
}

interface IdleSession extends ReadSession {
  readonly key: string
  readonly timer: Timer
}

const IDLE_MAX = 16
/** A session takes up to half a megabyte. */
const IDLE_MS = 60_000

/**
 * Keeps sessions of reads for later statements with the same settings: opening one takes as long as a short query, and
 * most queries of a workspace differ only in their text. A session runs one statement at a time.
 */
export class IdleSessions {
  /** The least recently used first. */
  private readonly idle: IdleSession[] = []
  /** Sessions of running statements, by query id. */
  private readonly busy = new Map<string, BusySession>()

  constructor(
    private readonly open: (job: Job) => Promise<EngineConnection>,
    private readonly close: (connection: EngineConnection) => void,
  ) {}

  /**
   * Runs one statement in a session of its own or a kept one.
   * @throws as `open` and `run`
   */
  async during<T>(job: Job, run: (connection: EngineConnection) => Promise<T>): Promise<T> {
    const key = keyOf(job)
    // A client may use an id twice at the same time.
    if (key === undefined || this.busy.has(job.queryId)) return this.once(job, run)
    const kept = this.take(key)
    const session: BusySession = { id: kept?.id ?? crypto.randomUUID(), isKilled: false }
    this.busy.set(job.queryId, session)
    let connection = kept?.connection
    let isReusable = false
    try {
      connection ??= await this.open({ ...job, queryId: session.id })
      const result = await run(connection)
      isReusable = !session.isKilled
      return result
    } finally {
      this.busy.delete(job.queryId)
      if (connection !== undefined && isReusable) this.keep(key, { connection, id: session.id })
      else if (connection !== undefined) this.close(connection)
    }
  }

  /** A condition on `log_comment` that finds the running statement of that id. Its session will not be used again. */
  toKill(queryId: string): string {
    const session = this.busy.get(queryId)
    if (session === undefined) return `= ${quote(queryId)}`
    session.isKilled = true
    return `IN (${quote(queryId)}, ${quote(session.id)})`
  }

  private async once<T>(job: Job, run: (connection: EngineConnection) => Promise<T>): Promise<T> {
    const connection = await this.open(job)
    try {
      return await run(connection)
    } finally {
      this.close(connection)
    }
  }

  private take(key: string): ReadSession | undefined {
    const at = this.idle.findLastIndex((session) => session.key === key)
    if (at < 0) return undefined
    const [{ timer, connection, id }] = this.idle.splice(at, 1)
    clearTimeout(timer)
    return { connection, id }
  }

  private keep(key: string, { connection, id }: ReadSession): void {
    if (this.idle.length === IDLE_MAX) this.drop(this.idle[0])
    const timer = setTimeout(() => this.drop(session), IDLE_MS).unref()
    const session: IdleSession = { key, connection, id, timer }
    this.idle.push(session)
  }

  private drop(session: IdleSession): void {
    clearTimeout(session.timer)
    this.idle.splice(this.idle.indexOf(session), 1)
    this.close(session.connection)
  }
}

/** Equal for jobs that can share a session; undefined if the job needs one of its own. */
function keyOf({ database, settings, parameters }: Job): string | undefined {
  // A parameter would remain set for the next statement.
  if (settings.readonly !== '1' || Object.keys(parameters).length > 0) return undefined
  return JSON.stringify([database, Object.entries(settings).sort()])
}
