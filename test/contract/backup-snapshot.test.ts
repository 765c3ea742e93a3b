import { expect, test } from 'bun:test'
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { createLog } from '../../src/base/log.ts'
import { type SnapshotDeps, takeSnapshot } from '../../src/service/backup/snapshot.ts'
import type { ColumnarClient } from '../../src/stores/clickhouse/client.ts'
import { freshDatabase } from '../support/postgres.ts'
import { postgresProxy } from '../support/tcp-proxy.ts'
import { temporaryDirectory } from '../support/teardown.ts'

/** When Postgres stops answering, and how long it is waited for. */
const MOMENTS = [
  ['begins', 4_000],
  ['holds the journal', 2_000],
] as const

test.each(MOMENTS)('no store waits for a Postgres that stops answering when a backup %s', async (moment, ms) => {
  const dataDir = await temporaryDirectory()
  for (const name of ['journal', 'clickhouse/metadata', 'clickhouse/shadow'])
    mkdirSync(join(dataDir, name), { recursive: true })
  const proxy = await postgresProxy((await freshDatabase()).url)
  const held = { journal: 0, sink: 0 }
  const deps: SnapshotDeps = {
    ...{ version: '1', dataDir, postgresUrl: proxy.url, log: createLog('silent'), holdMaxMs: 2_000 },
    columnar: { database: 'none', query: async () => [] } as unknown as ColumnarClient,
    journal: {
      ...{ epoch: 'e', endSeq: 1 },
      async hold() {
        held.journal++
        if (moment === 'holds the journal') proxy.hold()
        return () => held.journal--
      },
    },
    async holdSink() {
      const shadow = join(dataDir, 'clickhouse', 'shadow')
      held.sink++
      if (moment === 'begins') proxy.hold()
      // As ClickHouse does when it freezes a table.
      for (const name of readdirSync(join(dataDir, 'journal'))) mkdirSync(join(shadow, name), { recursive: true })
      return () => held.sink--
    },
  }
  await expect(takeSnapshot(deps)).rejects.toThrow(`no answer for ${ms} ms`)
  expect(held).toEqual({ journal: 0, sink: 0 })
  expect(readdirSync(join(dataDir, 'journal'))).toEqual([])
})
