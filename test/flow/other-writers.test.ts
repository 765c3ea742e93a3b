import { expect, test } from 'bun:test'
import { freshDatabase } from '../support/postgres.ts'
import { startTestService } from '../support/service.ts'

test.each([
  [null, 'NATS_URL'],
  [Bun.randomUUIDv7(), 'WORKERS'],
])('a single process refuses the database of several (home: %p), and names %s', async (home, variable) => {
  const { sql, url } = await freshDatabase()
  await sql`
    insert into journal_partitions (partition, epoch, epochs, seal_key, home)
    values (0, 'e', '[]', ${Buffer.alloc(32)}, ${home})`
  await expect(startTestService({ DATABASE_URL: url })).rejects.toThrow(variable)
})
