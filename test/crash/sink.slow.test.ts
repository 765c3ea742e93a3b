import { expect, test } from 'bun:test'
import { systemClock } from '../../src/base/clock.ts'
import { createLog } from '../../src/base/log.ts'
import { createColumnarClient } from '../../src/stores/clickhouse/client.ts'
import { startEmbeddedClickHouse } from '../../src/stores/clickhouse/engine/supervisor.ts'
import { migrateClickHouse } from '../../src/stores/clickhouse/migrate.ts'
import { openLocalJournal } from '../../src/stores/journal/local/journal.ts'
import { batchOf, runRef } from '../support/events.ts'
import { seededRandom } from '../support/random.ts'
import { deliveryRow, runRow, taskRow } from '../support/rows.ts'
import { startSink } from '../support/sink.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'

const log = createLog('silent')

test('every appended row reaches ClickHouse exactly once while the engine and the sink are killed', async () => {
  const random = seededRandom('sink')
  const dataDir = await temporaryDirectory()
  const engine = await startEmbeddedClickHouse({ dataDir, log })
  atEnd(() => engine.stop())
  const client = createColumnarClient(engine, 'sink_crash')
  await migrateClickHouse(client, log)
  const dir = `${dataDir}/journal`
  const journal = await openLocalJournal({
    dir,
    maxBytes: 1e12,
    keepBytes: 0,
    segmentBytes: 65_536,
    clock: systemClock,
    log,
  })
  // A killed sink's insert may continue, but nothing records its outcome.
  const start = async () => {
    const killed = Promise.withResolvers<never>()
    killed.promise.catch(() => {})
    const sink = await startSink({
      journal,
      client: {
        insertNative: (table, blocks, token, signal) =>
          Promise.race([client.insertNative(table, blocks, token, signal), killed.promise]),
      },
      dir: dataDir,
      log,
      intervalMs: 5,
    })
    return { sink, kill: () => killed.reject(new Error('killed')) }
  }
  const run = runRef()
  const stop = new AbortController()
  const appended = { events: 0, run_changes: 0, task_changes: 0, deliveries: 0 }
  const appending = Promise.all(
    Array.from({ length: 4 }, async () => {
      while (!stop.signal.aborted) {
        const events = Array.from({ length: random.int(1, 30) }, (_, index) => ({ type: 'mark', payload: { index } }))
        await journal.appendEvents(batchOf(run, events))
        appended.events += events.length
        if (random.bool(0.9)) continue
        const other = runRef()
        await Promise.all([
          journal.appendRuns([runRow(other), runRow(other, { status: 'failed' })], []),
          journal.appendTasks([taskRow(other)], []),
          journal.appendDeliveries([deliveryRow(other.workspaceId)]),
        ])
        appended.deliveries += 1
        appended.run_changes += 2
        appended.task_changes += 1
      }
    }),
  )
  for (let round = 0; round < 6; round++) {
    const { sink, kill } = await start()
    await Bun.sleep(random.int(20, 150))
    if (random.bool() && engine.pid !== undefined) process.kill(engine.pid, 'SIGKILL')
    await Bun.sleep(random.int(0, 60))
    kill()
    await sink.stop(0)
  }
  stop.abort()
  await appending
  const { sink } = await start()
  expect(await sink.waitFor(journal.endSeq, 20_000)).toBe(true)
  for (const [table, rows] of Object.entries(appended)) {
    const counts = await client.query(`select count() as rows, uniqExact(seq) as distinct from ${table}`)
    expect({ table, counts }).toEqual({ table, counts: [{ rows, distinct: rows }] })
  }
  // Merges compute the projection that answers counts by type.
  await client.command('optimize table events final')
  for (const optimize_use_projections of [0, 1])
    expect(
      await client.query('select type, count() as rows from events group by type', {
        settings: { optimize_use_projections, force_optimize_projection: optimize_use_projections },
      }),
    ).toEqual([{ type: 'mark', rows: appended.events }])
  expect(journal.endSeq).toBe(Object.values(appended).reduce((sum, rows) => sum + rows))
  const ended = appended.run_changes / 2
  expect(await client.query('select status, count() as rows from runs final group by status')).toEqual([
    { status: 'failed', rows: ended },
  ])
  expect(await client.query('select count() as rows from tasks final')).toEqual([{ rows: appended.task_changes }])
  await sink.stop(1_000)
  await journal.close()
  await engine.stop()
})
