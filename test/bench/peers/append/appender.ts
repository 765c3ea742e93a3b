/** A system that takes appends of events, and acknowledges them. */
export interface AppendPeer {
  readonly name: string
  /** Starts it with an empty store. @throws Unavailable */
  start(cache: string): Promise<Appender>
}

export interface Appender {
  /** With the version. */
  readonly title: string
  /** What an acknowledgement means, in words. */
  readonly durability: string
  /** When SQL shows the events, in words. */
  readonly sql: string
  readonly ways: readonly Way[]
  /** Events in the store, or the records that hold them. */
  stored(): Promise<number>
  /** Resolves once SQL shows all acknowledged events; undefined where there is nothing to wait for. */
  readonly settled?: () => Promise<void>
  stop(): Promise<void>
}

/** A way to append; the events of a call are acknowledged together. */
export interface Way {
  readonly name: string
  readonly eventsPerCall: number
  /** What the store then counts for a call, if not its events. */
  readonly recordsPerCall?: number
  plan(connections: number): AppendPlan
}

/** What each connection sends, for the process that makes the load. */
export interface AppendPlan {
  readonly protocol: 'http' | 'redis' | 'nats' | 'postgres'
  readonly target: { readonly port: number } | { readonly unix: string }
  readonly connections: readonly ConnectionPlan[]
  /** How many parts an answer has: lines in Redis, messages in NATS. */
  readonly answerParts?: number
}

/** In base64: requests are bytes. */
export interface ConnectionPlan {
  /** Sent first, and answered before the first request. */
  readonly greeting?: string
  /** Sent cyclically. */
  readonly requests: readonly string[]
}

/** The plan of each connection. @param requests the bytes of each of its requests */
export function connectionPlans(
  count: number,
  requests: (connection: number) => readonly (Buffer | string)[],
  greeting?: (connection: number) => Buffer | string,
): ConnectionPlan[] {
  const base64 = (bytes: Buffer | string) => Buffer.from(bytes as string).toString('base64')
  return Array.from({ length: count }, (_, connection) => ({
    requests: requests(connection).map(base64),
    ...(greeting && { greeting: base64(greeting(connection)) }),
  }))
}
