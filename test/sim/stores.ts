import { NativeBlock } from '../../src/stores/clickhouse/native-reader.ts'
import type { SinkPosition, SinkPositionStore } from '../../src/stores/sink/position.ts'
import type { SinkOptions } from '../../src/stores/sink/sink.ts'

/** What may go wrong at a store, and how long it takes. */
export interface StoreFaults {
  delay(): Promise<void>
  /** Fails before anything is stored. */
  failsBefore(): boolean
  /** Stores, and then the answer is lost. */
  failsAfter(): boolean
}

/** A process that has died: its calls never return, and change nothing. */
export const never = (): Promise<never> => new Promise<never>(() => {})

/** One table of ClickHouse, of the ids of rows. It does not store a load whose token it already knows. */
export class MemoryTable {
  readonly rows: string[] = []
  private readonly tokens = new Set<string>()

  constructor(private readonly faults: StoreFaults) {}

  /** The table as a process sees it. @param isDead whether that process has died */
  clientOf(isDead: () => boolean): SinkOptions['client'] {
    return {
      insertNative: async (_table, blocks, token, _signal, beforeEnd) => {
        await this.faults.delay()
        await beforeEnd?.()
        if (isDead()) return never()
        if (this.faults.failsBefore()) throw new Error('refused')
        if (!this.tokens.has(token)) {
          this.tokens.add(token)
          for (const block of blocks) this.rows.push(...idsOf(block))
        }
        if (this.faults.failsAfter()) throw new Error('the answer is lost')
      },
    }
  }
}

/** The ids of a block's deliveries, in order. */
export function idsOf(block: Uint8Array): string[] {
  const native = new NativeBlock(Buffer.from(block))
  const ids = native.strings('delivery_id')
  return Array.from({ length: native.rows }, (_, row) => ids.at(row) as string)
}

/** The sink's position in Postgres, which only the newest owner may change. */
export class MemoryPosition {
  stored: SinkPosition = { loadedSeq: 0, inFlightSeq: 0, reloads: 0, clearThroughSeq: 0 }
  /** That of the newest owner. */
  generation = 0

  constructor(private readonly faults: StoreFaults) {}

  /** The position as an owner sees it. @param isDead whether its process has died */
  storeOf(generation: number, isDead: () => boolean): SinkPositionStore {
    let last = this.stored
    return {
      get: () => last,
      set: async (changes) => {
        await this.faults.delay()
        if (isDead()) return never()
        if (generation !== this.generation) throw new Error('another owner has taken over')
        if (this.faults.failsBefore()) throw new Error('refused')
        const changed = { ...last, ...changes }
        this.stored = changed
        if (this.faults.failsAfter()) throw new Error('the answer is lost')
        last = changed
      },
      close: async () => {},
      announcedAgeMs: () => 0,
    }
  }
}
