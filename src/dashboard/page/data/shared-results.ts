import { parseIntact } from './json.ts'

/** What tabs need to share results: messages to each other, and a lock that one of them has at a time. */
export interface Exchange {
  send(message: SharedMessage): void
  listen(take: (message: SharedMessage) => void): void
  exclusive<T>(name: string, work: () => Promise<T>): Promise<T>
}

export interface SharedMessage {
  readonly name: string
  /** A result as text: structured cloning would lose the digits of large numbers. Absent: asks for it. */
  readonly json?: string
  readonly ageMs?: number
}

const KNOWN_MAX = 50
/** Other tabs answer within a few milliseconds, if they have it. */
const ANSWER_MS_MAX = 60

/** Results that all open tabs with the same key use, so that many tabs ask the service once. */
export class SharedResults {
  private readonly answered = new Map<string, () => void>()
  private readonly known = new Map<string, { readonly atMs: number; readonly value: unknown }>()

  /** @param exchange null: nothing is shared */
  constructor(
    private readonly exchange: Promise<Exchange | null>,
    private readonly now: () => number = () => performance.now(),
  ) {
    void exchange.then((open) => open?.listen((message) => this.take(open, message)))
  }

  /** A result that is not older than `maxAgeMs`, from any tab; else `load` makes one, in one tab at a time. */
  async get<T>(name: string, maxAgeMs: number, load: () => Promise<T>): Promise<T> {
    const exchange = await this.exchange
    if (exchange === null) return load()
    const known = this.fresh<T>(name, maxAgeMs)
    if (known !== undefined) return known
    return exchange.exclusive(name, async () => {
      // Another tab may have made it while this one waited, or before this one was opened.
      if (this.fresh(name, maxAgeMs) === undefined) await this.ask(exchange, name)
      const made = this.fresh<T>(name, maxAgeMs)
      if (made !== undefined) return made
      const value = await load()
      this.keep(name, value, 0)
      exchange.send({ name, json: JSON.stringify(value), ageMs: 0 })
      return value
    })
  }

  private take(exchange: Exchange, { name, json, ageMs = 0 }: SharedMessage): void {
    const known = this.known.get(name)
    if (json !== undefined) {
      this.keep(name, parseIntact(json), ageMs)
      this.answered.get(name)?.()
    } else if (known !== undefined) {
      exchange.send({ name, json: JSON.stringify(known.value), ageMs: this.now() - known.atMs })
    }
  }

  private async ask(exchange: Exchange, name: string): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ANSWER_MS_MAX)
      this.answered.set(name, () => {
        clearTimeout(timer)
        resolve()
      })
      exchange.send({ name })
    })
    this.answered.delete(name)
  }

  private fresh<T>(name: string, maxAgeMs: number): T | undefined {
    const found = this.known.get(name)
    return found !== undefined && this.now() - found.atMs <= maxAgeMs ? (found.value as T) : undefined
  }

  private keep(name: string, value: unknown, ageMs: number): void {
    const atMs = this.now() - ageMs
    if ((this.known.get(name)?.atMs ?? Number.NEGATIVE_INFINITY) > atMs) return
    this.known.delete(name)
    this.known.set(name, { atMs, value })
    const [oldest] = this.known.keys()
    if (this.known.size > KNOWN_MAX && oldest !== undefined) this.known.delete(oldest)
  }
}

/**
 * Connects the tabs that use the same key: a channel with another name would mix results of workspaces. Null where browsers
 * have no locks, which is without TLS on other machines.
 */
export async function exchangeOf(key: string, signal: AbortSignal): Promise<Exchange | null> {
  if (!isSecureContext) return null
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(key))
  const group = `results ${btoa(String.fromCharCode(...new Uint8Array(digest)))}`
  const channel = new BroadcastChannel(group)
  signal.addEventListener('abort', () => channel.close())
  return {
    send: (message) => {
      if (!signal.aborted) channel.postMessage(message)
    },
    listen: (take) => channel.addEventListener('message', ({ data }) => take(data as SharedMessage)),
    exclusive: (name, work) => navigator.locks.request(`${group} ${name}`, work) as ReturnType<typeof work>,
  }
}
