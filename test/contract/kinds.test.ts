import { expect, test } from 'bun:test'
import {
  EXPIRING_TABLES,
  KINDS,
  kindOfFrame,
  LOADED_TABLES,
  OUTBOX_ORDER,
  POSITIONED_TABLES,
  type RowKind,
  SEARCHED_TABLES,
  TABLES_INDEXED_LATER,
  VIEWS,
} from '../../src/stores/journal/kinds.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'

test('the tables and views of the kinds are those of ClickHouse that have positions', async () => {
  const { client } = await freshColumnarDatabase()
  const named = async (condition: string) => {
    const tables = await client.query<{ name: string }>(
      `select name from system.tables where database = currentDatabase() and ${condition}`,
    )
    return tables.map(({ name }) => name).sort()
  }
  const withColumn = (column: string) =>
    `engine like '%MergeTree' and name in (
       select table from system.columns where database = currentDatabase() and name = '${column}')`
  expect([...POSITIONED_TABLES].sort()).toEqual(await named(withColumn('seq')))
  expect([...VIEWS].sort()).toEqual(await named("engine = 'MaterializedView'"))
  expect([...SEARCHED_TABLES].sort()).toEqual(await named(withColumn('search_text')))
  expect([...TABLES_INDEXED_LATER].sort()).toEqual(
    await named("create_table_query like '%exclude_materialize_skip_indexes_on_merge%'"),
  )
  // Retention drops the partitions of days.
  expect([...EXPIRING_TABLES].sort()).toEqual(await named("partition_key = 'toDate(received_at)'"))
  const filled = [...LOADED_TABLES.flatMap(([, tables]) => tables)]
  for (const view of VIEWS) {
    const [{ target }] = await client.query<{ target: string }>(
      `select extract(create_table_query, 'TO [^.]+\\\\.(\\\\w+)') as target from system.tables
       where database = currentDatabase() and name = {view:String}`,
      { params: { view } },
    )
    filled.push(target)
  }
  // Each is filled by the sink or by a view, and by one of them only.
  expect(filled.sort()).toEqual([...POSITIONED_TABLES].sort())
})

test('what is stored of kinds stays: their numbers in frames, and their order in messages', () => {
  expect(Array.from(Object.keys(KINDS), (_, number) => kindOfFrame(number))).toEqual([
    'event',
    'task',
    'run',
    'delivery',
    'score',
  ])
  for (const kind of Object.keys(KINDS) as RowKind[]) expect(kindOfFrame(KINDS[kind].frame)).toBe(kind)
  expect(OUTBOX_ORDER).toEqual(['run', 'task', 'event'])
})

test('kinds are committed and loaded in the order that consumers rely on', () => {
  const orders = (order: (kind: RowKind) => number) => (Object.keys(KINDS) as RowKind[]).map(order).sort()
  expect(orders((kind) => KINDS[kind].commitOrder)).toEqual([0, 1, 2, 3, 4])
  expect(LOADED_TABLES).toEqual([
    ['event', ['events']],
    ['task', ['task_changes']],
    ['score', ['score_changes']],
    ['run', ['runs', 'run_changes']],
    ['delivery', ['deliveries']],
  ])
})
