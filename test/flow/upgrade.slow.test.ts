import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLog } from '../../src/base/log.ts'
import { restoreBackup } from '../../src/cli/backup/restore.ts'
import { unmarkRestored } from '../../src/service/store-marks/mark-file.ts'
import { eventually } from '../support/eventually.ts'
import { startModelServer } from '../support/model-server.ts'
import { type Release, readRelease } from '../support/release.ts'
import { spawnService } from '../support/service.ts'
import { temporaryDirectory } from '../support/teardown.ts'

/** This version continues from what each release has stored (`test/releases`): in the databases, the journal and backups. */

const ROOT = join(import.meta.dir, '..', '..')
const RELEASES = join(ROOT, 'test', 'releases')
const archives = readdirSync(RELEASES).filter((name) => name.endsWith('.tgz'))

async function unpack(archive: string) {
  const folder = await temporaryDirectory()
  await Bun.$`tar xzf ${join(RELEASES, archive)} -C ${folder}`
  const release: Release = JSON.parse(readFileSync(join(folder, 'release.json'), 'utf8'))
  return { folder, release }
}

test.each(archives)('%s: the statements of its migrations have not been changed since', async (archive) => {
  const { folder } = await unpack(archive)
  const files = readdirSync(join(folder, 'sql'), { recursive: true, encoding: 'utf8' })
  const migrations = files.filter((name) => name.endsWith('.sql'))
  expect(migrations.length).toBeGreaterThan(1)
  for (const name of migrations)
    expect(statementsOf(join(ROOT, 'sql', name))).toBe(statementsOf(join(folder, 'sql', name)))
})

/** Comments may change. */
function statementsOf(path: string): string {
  return readFileSync(path, 'utf8').replace(/^\s*--.*\n/gm, '')
}

test.each(archives)('%s: its runs, events, feeds and keys are there, and its runs continue', async (archive) => {
  const { folder, release } = await unpack(archive)
  const { workspaceKey, agentKey, runs, requestId, lastSeq, answers } = release
  const dataDir = await temporaryDirectory()
  const report = { during: <T>(_: string, __: unknown, work: (onBytes: () => void) => Promise<T>) => work(() => {}) }
  await restoreBackup({ folder: join(folder, 'backup'), dataDir, log: createLog('error'), report })
  // Not a restored service: the upgrade of one that was stopped. Its cursors stay valid.
  unmarkRestored(dataDir)
  const model = startModelServer({ text: 'Oslo it is.' })
  const service = await spawnService({
    DATA_DIR: dataDir,
    BOOTSTRAP_WORKSPACE_KEY: workspaceKey,
    OPENAI_BASE_URL: model.url,
  })
  const { api } = service
  expect(await readRelease(api, runs)).toMatchObject(answers)

  const events = [{ id: 'first', type: 'note' }, { type: 'after the upgrade' }]
  const reported = await api('POST', '/api/ingest/v1/events', { run_id: runs.live, events }, { key: agentKey })
  expect(reported.data).toMatchObject({ accepted: 1, duplicates: 1 })
  expect(reported.data.first_seq).toBeGreaterThan(lastSeq)
  const answered = await api('POST', `/api/v1/input-requests/${requestId}/answer`, { answer: 'Oslo' })
  expect(answered.data).toMatchObject({ run_id: runs.waiting, status: 'completed', output: { text: 'Oslo it is.' } })
  const query = "SELECT count() AS n FROM events WHERE type IN ('after the upgrade', 'run.completed')"
  await eventually(async () => expect((await api('POST', '/api/v1/query', { query })).data.rows).toEqual([{ n: 2 }]))
})
