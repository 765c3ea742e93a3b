import { NativeBlock } from '../../src/stores/clickhouse/native-reader.ts'
import { KINDS } from '../../src/stores/journal/kinds.ts'
import type { SinkPosition, SinkPositionStore } from '../../src/stores/sink/position.ts'
import type { SinkOptions } from '../../src/stores/sink/sink.ts'
import { time } from './virtual-time.ts'

/** What may go wrong at a store, and how long it takes. */
export interface StoreFaults {
  delay(): Promise<void>
  /** Fails before anything is stored. */
  failsBefore(): boolean
  /** Stores, and then the answer is lost. */
  failsAfter(): boolean
}

/** How long the table remembers the token of a load. */
const TOKEN_MS = 15_000

/** One table of ClickHouse. It does not store a load whose token it remembers. */
export class MemoryTable {
  rows: Row[] = []
  /** The table and token of each load, and when it was stored. */
  private readonly tokens = new Map<string, number>()

  /** @param tokenMs how long it remembers the token of a load */
  constructor(
    private readonly faults: StoreFaults,
    private readonly tokenMs = TOKEN_MS,
  ) {}

  /** The table as sinks see it. */
  get options(): Pick<SinkOptions, 'client' | 'clear' | 'tokenMs'> {
    const clear: SinkOptions['clear'] = async (afterSeq, throughSeq, _signal, confirm) => {
      await time.call(() => this.faults.delay())
      await confirm()
      await time.call(async () => {
        if (this.faults.failsBefore()) throw new Error('refused')
        this.rows = this.rows.filter(({ seq }) => seq <= afterSeq || seq > throughSeq)
        if (this.faults.failsAfter()) throw new Error('the answer is lost')
      })
    }
    const client: SinkOptions['client'] = {
      insertNative: async (table, blocks, token, _signal, beforeEnd) => {
        await time.call(() => this.faults.delay())
        await beforeEnd?.()
        await time.call(async () => this.load(table, blocks, token))
      },
    }
    return { client, clear, tokenMs: this.tokenMs - 2_000 }
  }

  private load(table: string, blocks: readonly Uint8Array[], token: string): void {
    const load = `${table} ${token}`
    if (this.faults.failsBefore()) throw new Error('refused')
    const knownMs = this.tokens.get(load)
    if (knownMs === undefined || time.nowMs - knownMs > this.tokenMs)
      for (const block of blocks) this.rows.push(...rowsOf(block, table))
    this.tokens.set(load, time.nowMs)
    if (this.faults.failsAfter()) throw new Error('the answer is lost')
  }
}

export interface Row {
  readonly id: string
  readonly seq: number
  readonly runId: string
  /** Unix milliseconds. */
  readonly receivedAt: number
  /** Of an event. */
  readonly type?: string
}

/** The column by which a table's rows are told apart here. */
const ID_COLUMNS = new Map<string, string>([
  [KINDS.event.rows, 'event_id'],
  [KINDS.run.rows, 'agent_name'],
  [KINDS.delivery.rows, 'delivery_id'],
])

/** A block's rows, in order; none of a table whose rows another one has, too. */
export function rowsOf(block: Uint8Array, table: string): Row[] {
  const id = ID_COLUMNS.get(table)
  if (id === undefined) return []
  const native = new NativeBlock(Buffer.from(block))
  const [ids, seqs, runIds] = [native.strings(id), native.numbers('seq'), native.uuids('run_id')]
  const received = native.numbers('received_at')
  const types = table === KINDS.event.rows ? native.strings('type') : undefined
  const rowAt = (row: number) => ({
    ...{ id: ids.at(row), seq: seqs.at(row), runId: runIds.at(row)!, receivedAt: received.at(row) },
    ...(types !== undefined && { type: types.at(row) }),
  })
  return Array.from({ length: native.rows }, (_, row) => rowAt(row))
}

/** The sink's position in Postgres, which only the newest owner may change. */
export class MemoryPosition {
  stored: SinkPosition = { loadedSeq: 0, inFlightSeq: 0, reloads: 0, clearThroughSeq: 0 }
  private announcedAtMs = 0
  /** That of the newest owner. */
  generation = 0

  constructor(private readonly faults: StoreFaults) {}

  /** The position as an owner sees it. */
  storeOf(generation: number): SinkPositionStore {
    let last = this.stored
    const { announcedAtMs } = this
    return {
      get: () => last,
      set: async (changes) => {
        const changed = { ...last, ...changes }
        await time.call(async () => {
          await this.faults.delay()
          if (generation !== this.generation) throw new Error('another owner has taken over')
          if (this.faults.failsBefore()) throw new Error('refused')
          if (batchOf(changed) !== batchOf(this.stored)) this.announcedAtMs = time.nowMs
          this.stored = changed
          if (this.faults.failsAfter()) throw new Error('the answer is lost')
        })
        last = changed
      },
      close: async () => {},
      announcedAgeMs: () => time.nowMs - announcedAtMs,
    }
  }
}

function batchOf({ inFlightSeq, reloads }: SinkPosition): string {
  return `${inFlightSeq} ${reloads}`
}
