import { expect, test } from 'bun:test'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const ROOT = join(import.meta.dir, '..', '..')
const TABLE = 'src/stores/journal/kinds.ts'
/** Where code differs by kind. */
const DECIDED_IN = [
  'src/feeds/live/filter-index.ts',
  'src/feeds/live/filter.ts',
  'src/feeds/live/frame-rows.ts',
  'src/feeds/live/history.ts',
  'src/feeds/live/matching.ts',
  'src/feeds/live/schema.ts',
  'src/feeds/webhooks/message.ts',
  'src/feeds/webhooks/slack.ts',
  'src/feeds/webhooks/subject.ts',
  'src/stores/journal/log/group-commit.ts',
]
/** Where it differs only by the kinds of the outbox. */
const DECIDED_FOR_OUTBOX = ['src/stores/journal/outbox-relay.ts']

/** @returns the files that do not compile with this declaration before that of events */
function offenders(declaration: string): string[] {
  const copy = mkdtempSync(join(tmpdir(), 'kinds-'))
  try {
    cpSync(join(ROOT, 'src'), join(copy, 'src'), {
      recursive: true,
      filter: (path) => !/src\/(dashboard|cli|client|hosted|doors)(\/|$)/.test(path),
    })
    symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
    const table = readFileSync(join(ROOT, TABLE), 'utf8').replace('export const KINDS = {', `$&\n${declaration}`)
    writeFileSync(join(copy, TABLE), table)
    const { compilerOptions } = JSON.parse(readFileSync(join(ROOT, 'tsconfig.json'), 'utf8'))
    const files = [TABLE, ...DECIDED_IN, ...DECIDED_FOR_OUTBOX]
    writeFileSync(join(copy, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }))
    const tsc = Bun.spawnSync([join(ROOT, 'node_modules/.bin/tsc'), '-p', '.', '--pretty', 'false'], { cwd: copy })
    const errors = tsc.stdout.toString().matchAll(/^(\S+)\(\d+,\d+\): error/gm)
    return [...new Set(Array.from(errors, ([, file = '']) => file))].sort()
  } finally {
    rmSync(copy, { recursive: true })
  }
}

const NEW = { frame: 5, isActivity: true, commitOrder: 5, loadOrder: 5, outboxOrder: null, rows: 'news', derived: [] }
const NEW_KIND = { ...NEW, searched: null, isIndexedLater: false }

test('a kind that is declared alone does not compile wherever something is to be decided about it', () => {
  expect(offenders('')).toEqual([])
  expect(offenders(`  news: ${JSON.stringify(NEW_KIND)},`)).toEqual(DECIDED_IN)
  // Of one that no feed shows, it is to be said how it is encoded, and that it is no activity.
  expect(offenders(`  news: ${JSON.stringify({ ...NEW_KIND, isActivity: false })},`)).toEqual([
    'src/feeds/live/frame-rows.ts',
    'src/stores/journal/log/group-commit.ts',
  ])
  expect(offenders(`  news: ${JSON.stringify({ ...NEW_KIND, outboxOrder: 2 })},`)).toEqual([
    ...DECIDED_IN,
    ...DECIDED_FOR_OUTBOX,
  ])
  // Each decision that a declaration leaves out.
  expect(offenders(`  news: ${JSON.stringify({ ...NEW_KIND, searched: undefined })},`)).toContain(TABLE)
}, 300_000)
