import { Failures } from './campaign.ts'

export interface WatchingOptions {
  /** Of several nodes, each connection goes to the next one. */
  readonly url: string | readonly string[]
  readonly workspaceKey: string
  readonly agentId: string
}

const RECONNECT_MS = 50

/**
 * Follows the events of an agent over server-sent events, through any number of lost connections, and checks that each
 * one arrives exactly once and in order. Speaks HTTP itself, so that no client of ours can hide a bug.
 */
export class Watching {
  readonly failures = new Failures()
  /** Events received, by run. */
  readonly received = new Map<string, number>()
  reconnects = 0
  private total = 0
  private lastSeq = 0
  private lastId = ''
  private readonly aborting = new AbortController()
  private readonly following: Promise<void>

  private constructor(
    private readonly name: string,
    private readonly options: WatchingOptions,
    private readonly opened: () => void,
  ) {
    this.following = this.follow()
  }

  /** Resolves once the feed is open: it gets everything reported from then on. */
  static async start(name: string, options: WatchingOptions): Promise<Watching> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const watching = new Watching(name, options, resolve)
    await promise
    return watching
  }

  get eventCount(): number {
    return this.total
  }

  async stop(): Promise<void> {
    this.aborting.abort()
    await this.following
  }

  private async follow(): Promise<void> {
    const { signal } = this.aborting
    while (!signal.aborted) {
      await this.connect(signal).catch(() => {})
      this.reconnects++
      await Bun.sleep(RECONNECT_MS)
    }
  }

  private async connect(signal: AbortSignal): Promise<void> {
    const { url, workspaceKey, agentId } = this.options
    const urls = [url].flat()
    const response = await fetch(
      `${urls[this.reconnects % urls.length]}/api/v1/stream?kind=event&agent_id=${agentId}`,
      {
        headers: {
          authorization: `Bearer ${workspaceKey}`,
          ...(this.lastId !== '' && { 'last-event-id': this.lastId }),
        },
        signal,
      },
    )
    if (response.status !== 200) {
      await response.body?.cancel()
      return
    }
    const decoder = new TextDecoder()
    let rest = ''
    for await (const chunk of response.body!) {
      rest += decoder.decode(chunk, { stream: true })
      const blocks = rest.split('\n\n')
      rest = blocks.pop()!
      for (const block of blocks) this.take(block)
    }
  }

  private take(block: string): void {
    const id = /^id: (.*)$/m.exec(block)?.[1]
    if (id !== undefined) this.lastId = id
    // The first message of a stream says where it starts.
    this.opened()
    const data = /^data: (.*)$/m.exec(block)?.[1]
    if (data === undefined) return
    if (/^event: gap$/m.test(block)) {
      this.failures.add(`${this.name}: a gap: ${data}`)
      return
    }
    const { run_id, event } = JSON.parse(data)
    if (event.seq <= this.lastSeq)
      this.failures.add(`${this.name}: ${event.seq} after ${this.lastSeq}: repeated or out of order`)
    this.lastSeq = event.seq
    const number = this.received.get(run_id) ?? 0
    if (event.payload.n !== number)
      this.failures.add(`${this.name}: event ${event.payload.n} of ${run_id}, expected ${number}`)
    this.received.set(run_id, number + 1)
    this.total++
  }
}

/** Watchers that begin at one of these URLs each, and go on at the others when they lose their connection. */
export function watchEach(
  urls: readonly string[],
  options: Pick<WatchingOptions, 'workspaceKey' | 'agentId'>,
): Promise<Watching[]> {
  return Promise.all(
    urls.map((_, index) =>
      Watching.start(`watcher ${index}`, { ...options, url: [...urls.slice(index), ...urls.slice(0, index)] }),
    ),
  )
}
