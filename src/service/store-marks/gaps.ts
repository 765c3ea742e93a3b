import type { ColumnarClient } from '../../stores/clickhouse/client.ts'
import type { Sql } from '../../stores/postgres/connect.ts'

/** Positions whose rows are permanently lost. */
interface LostRows {
  readonly epoch: string
  readonly afterSeq: number
  readonly throughSeq: number
  /** The store that lost them. */
  readonly reason: string
}

interface GapStores {
  readonly sql: Sql
  readonly columnar: ColumnarClient
}

interface GapRow {
  readonly epoch: string
  readonly after_seq: number
  readonly through_seq: number
  readonly reason: string
  readonly noticed_at: number
}

/** Stores a gap in ClickHouse, where SQL shows it, and in Postgres, in case ClickHouse is lost. `now`: Unix milliseconds. */
export async function noteGap({ sql, columnar, now }: GapStores & { now: number }, lost: LostRows): Promise<void> {
  await sql`
    insert into journal_gaps (epoch, after_seq, through_seq, reason, noticed_at)
    values (${lost.epoch}, ${lost.afterSeq}, ${lost.throughSeq}, ${lost.reason}, ${new Date(now)})
    on conflict do nothing`
  await shareGaps({ sql, columnar })
}

/** Copies gaps that only one of the two stores has to the other. */
export async function shareGaps({ sql, columnar }: GapStores): Promise<void> {
  const inColumnar = await columnar.query<GapRow>(
    'select epoch, after_seq, through_seq, reason, toUnixTimestamp64Milli(noticed_at) as noticed_at from gaps final',
  )
  const inPostgres = await sql<GapRow[]>`
    select epoch, after_seq, through_seq, reason, (extract(epoch from noticed_at) * 1000)::bigint as noticed_at
    from journal_gaps`
  const keyOf = (gap: GapRow) => `${gap.epoch} ${gap.after_seq} ${gap.through_seq}`
  const known = { columnar: new Set(inColumnar.map(keyOf)), postgres: new Set(inPostgres.map(keyOf)) }
  for (const gap of inPostgres.filter((each) => !known.columnar.has(keyOf(each)))) {
    await columnar.command(
      `insert into gaps select {epoch:String}, {after_seq:UInt64}, {through_seq:UInt64}, {reason:String},
         fromUnixTimestamp64Milli({noticed_at:Int64}, 'UTC')`,
      { params: { ...gap } },
    )
  }
  for (const gap of inColumnar.filter((each) => !known.postgres.has(keyOf(each)))) {
    await sql`
      insert into journal_gaps (epoch, after_seq, through_seq, reason, noticed_at)
      values (${gap.epoch}, ${gap.after_seq}, ${gap.through_seq}, ${gap.reason}, ${new Date(gap.noticed_at)})
      on conflict do nothing`
  }
}
