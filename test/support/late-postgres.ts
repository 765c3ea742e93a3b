import { connect, createServer, type Socket } from 'node:net'
import { atEnd } from './teardown.ts'

/**
 * What becomes of one exchange with Postgres, a statement and its answer:
 * - `now`: nothing special;
 * - `late`: the answer comes after `ms`;
 * - `refused`: the connection breaks before Postgres has the statement;
 * - `unheard`: Postgres has carried it out, and the connection breaks before the answer;
 * - `afterwards`: the connection breaks at once, and Postgres gets the statement `ms` later.
 */
export type Fate =
  | { readonly kind: 'now' | 'refused' | 'unheard' }
  | { readonly kind: 'late' | 'afterwards'; readonly ms: number }

/** @param statement its text, as far as the connection has shown it @param nth how often it was asked before */
export type FateOf = (statement: string, nth: number) => Fate

export interface LatePostgres {
  /** The database's URL, through the proxy. */
  readonly url: string
  /** How many exchanges had each fate. */
  readonly counts: ReadonlyMap<Fate['kind'], number>
  /** From now on the fate of each exchange; undefined: all is well. */
  meddle(fateOf: FateOf | undefined): void
}

/** A proxy to Postgres that knows where an exchange ends, so that it can be late or break between any two of them. */
export async function latePostgres(databaseUrl: string): Promise<LatePostgres> {
  const url = new URL(databaseUrl)
  const [from, directory] = [Number(url.port || 5432), url.searchParams.get('host')]
  const open = () =>
    directory?.startsWith('/') ? connect(`${directory}/.s.PGSQL.${from}`) : connect(from, url.hostname)
  const counts = new Map<Fate['kind'], number>()
  const asked = new Map<string, number>()
  let fateOf: FateOf | undefined
  const decide = (statement: string): Fate => {
    const nth = asked.get(statement) ?? 0
    asked.set(statement, nth + 1)
    const fate = fateOf?.(statement, nth) ?? { kind: 'now' }
    if (fateOf !== undefined) counts.set(fate.kind, (counts.get(fate.kind) ?? 0) + 1)
    return fate
  }
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = open()
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('close', () => sockets.delete(socket))
    }
    new Link(client, upstream, decide)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEnd(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  url.searchParams.delete('host')
  url.hostname = '127.0.0.1'
  url.port = String((server.address() as { port: number }).port)
  return {
    url: url.href,
    counts,
    meddle: (next) => {
      fateOf = next
    },
  }
}

const [PARSE, BIND, QUERY, SYNC, FLUSH, READY] = [...'PBQSHZ'].map((letter) => letter.charCodeAt(0))

/** One connection of a client, and its own to the server. */
class Link {
  /** Until the server is ready for the first time, everything passes: the start of a session has messages of its own. */
  private hasBegun = false
  private asking = Buffer.alloc(0)
  private answering = Buffer.alloc(0)
  /** The messages of an exchange that has not ended, and of its answer. */
  private request: Buffer[] = []
  private response: Buffer[] = []
  private statement = ''
  private readonly prepared = new Map<string, string>()
  /** What becomes of the exchanges that the server has not answered. */
  private readonly open: Fate[] = []
  /** Answers keep their order. */
  private delivered: Promise<void> = Promise.resolve()
  private isBroken = false

  constructor(
    private readonly client: Socket,
    private readonly upstream: Socket,
    private readonly decide: (statement: string) => Fate,
  ) {
    for (const socket of [client, upstream]) socket.on('error', () => {}).setNoDelay(true)
    client.on('data', (data) => this.ask(data as Buffer))
    upstream.on('data', (data) => this.answer(data as Buffer))
    client.on('close', () => {
      if (!this.isBroken) upstream.destroy()
    })
    upstream.on('close', () => client.destroy())
  }

  private ask(data: Buffer): void {
    if (!this.hasBegun) return void this.upstream.write(data)
    this.asking = Buffer.concat([this.asking, data])
    for (const message of this.take('asking')) {
      if (this.isBroken) return
      const [type] = message
      this.request.push(message)
      if (type === PARSE || type === BIND || type === QUERY) this.read(type, message)
      if (type === FLUSH) this.pass()
      if (type === SYNC || type === QUERY) this.end()
    }
  }

  /** Remembers the statement that a message is about. */
  private read(type: number, message: Buffer): void {
    const [first = '', second = ''] = message.toString('utf8', 5).split('\0', 2)
    if (type === QUERY) this.statement = first
    // The statement's name and text; of a bound one, the portal and the statement's name.
    if (type === PARSE) this.prepared.set(first, second)
    if (type === PARSE) this.statement = second
    if (type === BIND) this.statement = this.prepared.get(second) ?? ''
  }

  private pass(): void {
    this.upstream.write(Buffer.concat(this.request.splice(0)))
  }

  private end(): void {
    const fate = this.decide(this.statement)
    if (fate.kind === 'refused') {
      this.break()
      return
    }
    if (fate.kind === 'afterwards') {
      this.isBroken = true
      this.client.destroy()
      // What the client has sent after it is lost.
      setTimeout(() => {
        this.open.push({ kind: 'unheard' })
        this.pass()
      }, fate.ms)
      return
    }
    this.open.push(fate)
    this.pass()
  }

  private answer(data: Buffer): void {
    if (!this.hasBegun) {
      this.client.write(data)
      // The last message of the start: ReadyForQuery, 5 bytes after its type.
      this.hasBegun = data.length >= 6 && data[data.length - 6] === READY
      return
    }
    this.answering = Buffer.concat([this.answering, data])
    for (const message of this.take('answering')) {
      this.response.push(message)
      const fate = message[0] === READY ? this.open.shift() : undefined
      if (fate !== undefined) this.deliver(fate)
      // A description, which the client needs before it sends the rest, or a notice.
      else if (this.open.length === 0) this.deliver({ kind: 'now' })
    }
  }

  private deliver(fate: Fate): void {
    const bytes = Buffer.concat(this.response.splice(0))
    this.delivered = this.delivered.then(async () => {
      if (fate.kind === 'unheard') return this.break()
      if (fate.kind === 'late') await Bun.sleep(fate.ms)
      this.client.write(bytes)
    })
  }

  private break(): void {
    this.isBroken = true
    this.client.destroy()
    this.upstream.destroy()
  }

  /** The whole messages of what has arrived. */
  private take(from: 'asking' | 'answering'): Buffer[] {
    const messages: Buffer[] = []
    let at = 0
    const bytes = this[from]
    while (bytes.length - at >= 5) {
      const end = at + 1 + bytes.readUInt32BE(at + 1)
      if (end > bytes.length) break
      messages.push(bytes.subarray(at, end))
      at = end
    }
    this[from] = bytes.subarray(at)
    return messages
  }
}
