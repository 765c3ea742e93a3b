import { createGate } from '../gate.ts'
import type { Lane } from './session.ts'

export type Lanes = ReturnType<typeof createLanes>

interface LaneRequest {
  readonly lane: Lane | 'stream'
  /** See `Statement.quotaKey`. */
  readonly quotaKey: string | undefined
}

/** Maximum numbers of running and waiting statements. */
const GATES: Readonly<Record<LaneRequest['lane'], readonly [atOnce: number, waitingMax: number]>> = {
  tenant: [16, 256],
  // Streamed results may have slow readers; they must not take slots of short statements.
  stream: [8, 64],
  service: [8, 256],
  load: [4, 64],
}

/** The thread pool runs tenants' statements. Eight more threads classify statements without waiting for slow ones. */
export const POOL_THREADS = GATES.tenant[0] + GATES.stream[0] + 8

const WAITING_PER_KEY_MAX = 64

/**
 * Limits concurrent statements. The service's own statements never wait for a tenant's query, and one tenant's queries
 * never take more than their share. A slot is released when the engine has ended the statement, not when its client
 * disconnects.
 *
 * @param statementsPerKey maximum concurrent statements of one quota key
 */
export function createLanes(statementsPerKey: number) {
  const gates = {
    tenant: createGate(...GATES.tenant),
    stream: createGate(...GATES.stream),
    service: createGate(...GATES.service),
    load: createGate(...GATES.load),
  }
  const keys = new Map<string, { readonly gate: ReturnType<typeof createGate>; users: number }>()

  return {
    /** @throws ClickHouseFailure TOO_MANY_SIMULTANEOUS_QUERIES; QUERY_WAS_CANCELLED when the signal aborts while it waits */
    async run<T>({ lane, quotaKey: key }: LaneRequest, signal: AbortSignal, task: () => Promise<T>): Promise<T> {
      const run = () => gates[lane].run(signal, task)
      if (key === undefined) return run()
      const entry = keys.get(key) ?? { gate: createGate(statementsPerKey, WAITING_PER_KEY_MAX), users: 0 }
      keys.set(key, entry)
      entry.users++
      try {
        return await entry.gate.run(signal, run)
      } finally {
        if (--entry.users === 0) keys.delete(key)
      }
    },
    /** Resolves once nothing runs. */
    idle: () => Promise.all(Object.values(gates).map((gate) => gate.idle())),
  }
}
