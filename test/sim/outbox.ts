import { createLog } from '../../src/base/log.ts'
import { RawJson } from '../../src/base/raw-json.ts'
import { type OutboxRelay, startOutboxRelay } from '../../src/stores/journal/outbox-relay.ts'
import type { OutboxRow, RelayedRows } from '../../src/stores/journal/outbox-rows.ts'
import { alertRow, runRow } from '../support/rows.ts'
import type { Owner, Part, Surroundings } from './part.ts'
import type { Row } from './stores.ts'
import { time } from './virtual-time.ts'

/** As the limit of bytes does: fewer than the statement has found. */
const ROWS_PER_TAKE = 4
const CHANGE = /^change (\d+)$/

/** Who writes the log. */
type Writer = Pick<Owner, 'process' | 'journal'>

/** The outbox in Postgres, and the relay of each owner, which appends its rows to the log. */
export class SimulatedOutbox implements Part {
  private rows: Omit<OutboxRow, 'found' | 'pid'>[] = []
  private committed = 0
  /** The run of each change, by its number. */
  private readonly runs = new Map<number, string>()
  private newest: { readonly owner: Writer; readonly relay: OutboxRelay } | undefined

  constructor(private readonly world: Pick<Surroundings, 'runs' | 'trace' | 'fails' | 'delay' | 'problem'>) {}

  opened(owner: Writer): OutboxRelay {
    const relay = startOutboxRelay({ rows: this.asSeenBy(owner.process.name), journal: owner.journal, log: SILENT })
    this.newest = { owner, relay }
    return relay
  }

  /** A statement commits changes of a run, and the process that has sent it wakes its relay; or a caller waits for all changes. */
  async step(): Promise<void> {
    const { random } = time
    const { newest, world } = this
    if (newest !== undefined && random.chance(0.2)) {
      const before = this.committed
      world.trace(newest.owner.process.name, `is asked for all changes up to ${before}`)
      const flushed = time.within(newest.owner.process, () => Bun.sleep(0).then(() => newest.relay.flush()))
      await Promise.race([flushed, Bun.sleep(FLUSH_MS).then(() => Promise.reject(new Error('late')))]).then(
        () => {
          const [first] = this.rows
          if (first !== undefined && first.outbox_id <= before)
            world.problem(`change ${first.outbox_id} is not in the log, although all up to ${before} should be`)
        },
        () => {},
      )
      return
    }
    const run = random.pick(world.runs)
    for (let changes = random.int(1, 3); changes > 0; changes--) this.commit(run, random.chance(0.5) ? 'run' : 'event')
    if (newest !== undefined && random.chance(0.7)) time.within(newest.owner.process, () => newest.relay.wake())
  }

  isDone(): boolean {
    return this.rows.length === 0
  }

  check(rows: readonly Row[]): void {
    const inLog = rows.flatMap(({ id, seq }) => (CHANGE.test(id) ? { change: Number(CHANGE.exec(id)![1]), seq } : []))
    const places = Map.groupBy(inLog, ({ change }) => change)
    for (let change = 1; change <= this.committed; change++) {
      const found = places.get(change) ?? []
      const seqs = found.map(({ seq }) => seq).join(' and ')
      if (found.length !== 1) this.world.problem(`change ${change}: in the log at ${seqs || 'no position'}`)
    }
    const lasts = new Map<string, number>()
    for (const { change } of inLog) {
      const run = this.runs.get(change)!
      const last = lasts.get(run) ?? 0
      if (change < last) this.world.problem(`change ${change}: in the log after change ${last} of its run`)
      lasts.set(run, Math.max(last, change))
    }
  }

  private commit(run: Surroundings['runs'][number], kind: 'run' | 'event'): void {
    const outbox_id = ++this.committed
    const name = `change ${outbox_id}`
    const event = { ...alertRow(run.workspaceId, { event_id: name }), agent_id: run.agentId, run_id: run.runId }
    const row = kind === 'run' ? runRow(run, { agent_name: name }) : event
    this.rows.push({ outbox_id, entry_id: Bun.randomUUIDv7(), kind, body: RawJson.of(row) })
    this.runs.set(outbox_id, run.runId)
    this.world.trace('Postgres', `commits ${name}`, kind)
  }

  private asSeenBy(who: string): Pick<RelayedRows, keyof RelayedRows> {
    const call = <Answer>(serve: () => Answer) =>
      time.call(async () => {
        await this.world.delay()
        if (this.world.fails(0.03, who, 'statement refused')) throw new Error('refused')
        const answer = serve()
        await this.world.delay()
        if (this.world.fails(0.03, who, 'statement unanswered')) throw new Error('the answer is lost')
        return answer
      })
    return {
      partition: 0,
      some: () => call(() => this.rows.length > 0),
      take: () =>
        call(() => this.rows.slice(0, ROWS_PER_TAKE).map((row) => ({ ...row, found: this.rows.length, pid: 1 }))),
      remove: (rows) =>
        call(() => {
          this.rows = this.rows.filter(({ entry_id }) => !rows.some((row) => row.entry_id === entry_id))
        }),
      setAside: async (ids) => this.world.problem(`${ids.length} changes are set aside`),
      done: async () => {},
      close: async () => {},
    }
  }
}

const SILENT = createLog('silent')
/** How long a caller waits. */
const FLUSH_MS = 10_000
