import { expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { LOCK_NAME, takeFileLock, tryDataDir } from '../../src/base/data-dir.ts'
import { createLog } from '../../src/base/log.ts'
import { createReport } from '../../src/cli/backup/report.ts'
import { restoreBackup } from '../../src/cli/backup/restore.ts'
import { Identity } from '../../src/stores/journal/local/identity.ts'
import { temporaryDirectory } from '../support/teardown.ts'

/** What `restore` refuses before it opens a store. `test/flow/backup.test.ts` restores real backups. */

const CONTENT = 'content of an attacker'
// biome-ignore lint/suspicious/noExplicitAny: tests break its shape.
type Loose = Record<string, any>
type Edit = (manifest: Loose, folder: string) => void

function fileOf(path: string, content = CONTENT) {
  return { path, bytes: content.length, sha256: createHash('sha256').update(content).digest('hex') }
}

/** A folder with a signed manifest, changed before (`edit`) or after (`tamper`) it is signed. */
async function backupOf(parent: string, { edit, tamper }: { edit?: Edit; tamper?: Edit }): Promise<string> {
  const folder = join(parent, 'backup')
  mkdirSync(join(folder, 'journal'), { recursive: true })
  const identity = Identity.open(join(folder, 'journal'), false)
  const journal = readdirSync(join(folder, 'journal')).map((name) => `journal/${name}`)
  const manifest: Loose = {
    format: 1,
    version: '0.0.0',
    taken_at: '2026-01-01T00:00:00.000Z',
    epoch: identity.epoch,
    end_seq: 0,
    loaded_seq: 0,
    held_ms: 0,
    postgres: { migrations: [], tables: [], sequences: {} },
    clickhouse: { rows: 0 },
    files: journal.map((path) => fileOf(path, readFileSync(join(folder, path), 'utf8'))),
  }
  edit?.(manifest, folder)
  const signature = identity.signatureOf('backup manifest', JSON.stringify(manifest))
  tamper?.(manifest, folder)
  writeFileSync(join(folder, 'manifest.json'), JSON.stringify({ ...manifest, signature }))
  return folder
}

const QUIET = createReport({ write: () => true } as never)

async function refusalOf(folder: string, dataDir: string, signature?: string, report = QUIET): Promise<string> {
  return restoreBackup({ folder, dataDir, log: createLog('silent'), report, ...(signature && { signature }) }).then(
    () => 'restored',
    (error) => error.message,
  )
}

/** Puts a file where `path` leads from the backup, so that only the name is wrong. */
function withFile(path: string): Edit {
  return (manifest, folder) => {
    const at = path.startsWith('/') ? path : join(folder, path)
    mkdirSync(dirname(at), { recursive: true })
    writeFileSync(at, CONTENT)
    manifest.files.push(fileOf(path))
  }
}

test.each([
  '../outside',
  'journal/../../outside',
  'clickhouse/../../outside',
  'journal/./outside',
  'journal//outside',
  'journal/',
  'control',
  'restored',
  '',
  'journal/a\u0000b',
  'journal\\..\\outside',
])('a manifest that names the file %j is refused, and nothing is written', async (path) => {
  const parent = await temporaryDirectory()
  const isWritable = !path.includes('\0') && path !== '' && !path.endsWith('/')
  const edit: Edit = isWritable ? withFile(path) : (manifest) => void manifest.files.push(fileOf(path))
  const folder = await backupOf(parent, { edit })
  const dataDir = join(parent, 'deeper', 'data')
  mkdirSync(dirname(dataDir))
  expect(await refusalOf(folder, dataDir)).toContain(`it names ${JSON.stringify(path)}`)
  expect(readdirSync(dirname(dataDir))).toEqual([])
})

test('an absolute path is refused', async () => {
  const parent = await temporaryDirectory()
  const folder = await backupOf(parent, { edit: withFile(join(parent, 'absolute')) })
  expect(await refusalOf(folder, join(parent, 'data'))).toContain('it names "/')
})

async function expectRefused(edits: Parameters<typeof backupOf>[1], problem: string, signature?: string) {
  const parent = await temporaryDirectory()
  const folder = await backupOf(parent, edits)
  expect(await refusalOf(folder, join(parent, 'data'), signature)).toContain(problem)
  expect(existsSync(join(parent, 'data'))).toBe(false)
}

test.each<[string, Edit, string]>([
  ['a file twice', (m) => m.files.push(m.files[0]), 'it names "journal/epoch'],
  ['a size that is none', (m) => Object.assign(m.files[0], { bytes: -1 }), 'it names "journal/epoch'],
  ['a migration elsewhere', (m) => m.postgres.migrations.push('../../x.sql'), 'it names "../../x.sql"'],
  ['a table elsewhere', (m) => m.postgres.tables.push({ name: '../x', columns: [], rows: 0 }), 'it names "../x"'],
  ['a table without its file', (m) => m.postgres.tables.push({ name: 'x', columns: [], rows: 0 }), 'it names "x"'],
  ['no files', (m) => delete m.files, 'it is incomplete'],
])('a manifest with %s is refused', (_, edit, problem) => expectRefused({ edit }, problem))

test.each([true, false])('a link in a backup is refused, as a folder: %j', async (isFolder) => {
  const secret = await temporaryDirectory()
  writeFileSync(join(secret, 'file'), CONTENT)
  const edit: Edit = (manifest, at) => {
    if (isFolder) symlinkSync(secret, join(at, 'clickhouse'))
    else {
      mkdirSync(join(at, 'clickhouse'))
      symlinkSync(join(secret, 'file'), join(at, 'clickhouse', 'file'))
    }
    manifest.files.push(fileOf('clickhouse/file'))
  }
  await expectRefused({ edit }, `${isFolder ? 'clickhouse' : 'clickhouse/file'} is a link or a special file`)
})

test.each<[string, Edit]>([
  ['its position', (manifest) => Object.assign(manifest, { end_seq: 1 })],
  ['its files', (manifest) => manifest.files.pop()],
  ['its rows', (manifest) => Object.assign(manifest.clickhouse, { rows: 7 })],
])('a manifest whose signature does not cover %s is refused', (_, tamper) =>
  expectRefused({ tamper }, 'does not match its signature'),
)

test('a backup other than the one whose signature was kept is refused, even if it is sound', () =>
  expectRefused({}, 'this is another backup', 'ab'.repeat(32)))

test('while a backup is checked, nothing else begins in the directory', async () => {
  const parent = await temporaryDirectory()
  const folder = await backupOf(parent, {})
  const dataDir = join(parent, 'data')
  const refused: string[] = []
  const report: typeof QUIET = {
    async during(_label, _total, work) {
      refused.push(await refusalOf(folder, dataDir))
      expect(() => tryDataDir(dataDir)).toThrow('incomplete restore')
      await work(() => {})
      throw new Error('stopped')
    },
  }
  expect(await refusalOf(folder, dataDir, undefined, report)).toBe('stopped')
  expect(refused).toEqual([expect.stringContaining('is not empty')])
  // It was not there before.
  expect(existsSync(dataDir)).toBe(false)
})

test('a service that is starting keeps its directory', async () => {
  const parent = await temporaryDirectory()
  const folder = await backupOf(parent, {})
  const dataDir = join(parent, 'data')
  mkdirSync(dataDir)
  const lock = takeFileLock(join(dataDir, LOCK_NAME))
  expect(await refusalOf(folder, dataDir)).toContain('is not empty')
  lock?.close()
})
