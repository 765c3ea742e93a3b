import { expect, test } from 'bun:test'
import { copyFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createLog } from '../../src/base/log.ts'
import { createColumnarClient } from '../../src/clickhouse/client.ts'
import { migrateClickHouse } from '../../src/clickhouse/migrate.ts'
import { EventBlock } from '../../src/journal/blocks/event-block.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'
import { batchOf, runRef } from '../support/events.ts'
import { eventually } from '../support/eventually.ts'
import { temporaryDirectory } from '../support/teardown.ts'

/** Levels that an earlier version stored although the enum lacks them: every query that reads them failed. */

const log = createLog('error')
const MIGRATIONS = join(import.meta.dir, '..', '..', 'sql', 'clickhouse')
const MIGRATION = '0008_event_levels.sql'
/** Among the pieces of a block, after its head and six columns of two pieces each. */
const LEVEL_PIECE = 14

test('levels that the enum lacks become info, and the others stay', async () => {
  const { backend } = await freshColumnarDatabase()
  const name = `test_levels_${process.pid}`
  const client = createColumnarClient(backend, name)
  await migrateClickHouse(client, log, await migrationsBefore(MIGRATION))
  const levels = ['debug', 'warn', 'warn', 'error', 'error']
  const events = levels.map((level, index) => ({ id: `e${index}`, type: 'note', level }))
  const block = new EventBlock()
  block.add({ ...batchOf(runRef(), events), ids: events.map(({ id }) => id) }, Date.now())
  const pieces = block.build(1, Date.now(), 'epoch-1')
  expect([...pieces[LEVEL_PIECE]]).toEqual([1, 3, 3, 4, 4])
  pieces[LEVEL_PIECE].set([1, 0, 3, 9, 4])
  await client.insertNative('events', pieces, 'a', new AbortController().signal)
  const read = () => client.query<{ level: string }>('select level from events order by seq')
  expect(await read().then(String, ({ message }) => message)).toContain('enum')

  await migrateClickHouse(client, log)
  // ClickHouse rewrites the parts in the background.
  const rows = await eventually(read)
  expect(rows.map(({ level }) => level)).toEqual(['debug', 'info', 'warn', 'info', 'error'])
  await client.command(`drop database ${name}`, { database: 'default' })
  await client.close()
})

async function migrationsBefore(name: string): Promise<string> {
  const directory = await temporaryDirectory()
  for (const each of (await readdir(MIGRATIONS)).filter((file) => file < name))
    await copyFile(join(MIGRATIONS, each), join(directory, each))
  return directory
}
