import { expect, test } from 'bun:test'
import fs from 'node:fs'
import { join } from 'node:path'
import { $ } from 'bun'
import { systemClock } from '../../src/base/clock.ts'
import { createLog } from '../../src/base/log.ts'
import { openLocalJournal } from '../../src/stores/journal/local/journal.ts'
import { newAgent } from '../support/api.ts'
import { batchOf, runRef } from '../support/events.ts'
import { eventually } from '../support/eventually.ts'
import { startTestService } from '../support/service.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'

/** Readiness while the journal cannot accept reports. */

const PIECE = Buffer.alloc(1 << 20)

/** A small file system that can fill up; undefined where this user may not mount one. */
async function smallDisk(): Promise<string | undefined> {
  const dir = await temporaryDirectory()
  const { exitCode } = await $`mount -t tmpfs -o size=96m,mode=0777 tmpfs ${dir}`.quiet().nothrow()
  if (exitCode !== 0) return undefined
  atEnd(() => $`umount -l ${dir}`.quiet().nothrow())
  return dir
}

function fill(path: string): void {
  const file = fs.openSync(path, 'w')
  try {
    for (let size = PIECE.length; size >= 1; size = Math.floor(size / 2)) {
      try {
        while (fs.writeSync(file, PIECE, 0, size) === size);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
      }
    }
  } finally {
    fs.closeSync(file)
  }
}

test('after a failed append the journal is unhealthy until a probe succeeds, even without further appends', async () => {
  const dir = await temporaryDirectory()
  const sizes = { maxBytes: 2 ** 40, keepBytes: 2 ** 40, segmentBytes: 1 }
  const journal = await openLocalJournal({ dir, ...sizes, clock: systemClock, log: createLog('silent') })
  const append = () => journal.appendEvents(batchOf(runRef(), [{ type: 'a' }]))
  await append()
  await journal.check()
  fs.renameSync(dir, `${dir}-away`)
  await expect(append()).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  await expect(journal.check()).rejects.toMatchObject({ code: 'UNAVAILABLE', message: 'the journal cannot be written' })
  fs.renameSync(`${dir}-away`, dir)
  await eventually(() =>
    journal.check().then(
      () => true,
      () => false,
    ),
  )
  expect(await append()).toEqual({ firstSeq: 2, lastSeq: 2 })
  await journal.close()
})

test('readyz is 503 while the disk is full and says so, and 200 once there is space and reports are accepted again', async () => {
  const disk = await smallDisk()
  if (disk === undefined) return
  const { api } = await startTestService({ DATA_DIR: disk })
  const { agentId, agentKey } = await newAgent(api)
  const { data } = await api('POST', '/api/ingest/v1/run/start', { agent_id: agentId }, { key: agentKey })
  const report = () =>
    api('POST', '/api/ingest/v1/events', { run_id: data.run_id, events: [{ type: 'a' }] }, { key: agentKey })
  const readyz = () => api('GET', '/readyz', undefined, { key: null })
  expect([(await report()).status, (await readyz()).status]).toEqual([200, 200])
  const filler = join(disk, 'filler')
  fill(filler)
  await eventually(async () => (await readyz()).status === 503)
  expect((await readyz()).error?.message).toContain('journal: the journal cannot be written: its disk is full')
  // The rest of the last page may be enough for one more report.
  await eventually(async () => (await report()).status === 503)
  fs.rmSync(filler)
  await eventually(async () => (await readyz()).status === 200)
  expect((await report()).status).toBe(200)
})
