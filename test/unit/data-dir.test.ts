import { expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openDataDir } from '../../src/base/data-dir.ts'
import { temporaryDirectory } from '../support/teardown.ts'

/** Everything that a change of a directory would show. */
function stateOf(path: string) {
  return ['', ...readdirSync(path, { recursive: true, encoding: 'utf8' })].sort().map((name) => {
    const { mtimeMs, ctimeMs, size } = statSync(join(path, name))
    return { name, mtimeMs, ctimeMs, size }
  })
}

test('a new directory gets a format, and opens again', async () => {
  const path = await temporaryDirectory()
  openDataDir(path).release()
  expect(readFileSync(join(path, 'format'), 'utf8')).toBe('1\n')
  openDataDir(path).release()
})

test.each(['holder', 'journal/epoch', 'postgres/password', 'clickhouse/store'])(
  'a directory of an unreleased version (%s) is refused and not changed',
  async (name) => {
    const path = await temporaryDirectory()
    mkdirSync(join(path, name, '..'), { recursive: true })
    writeFileSync(join(path, name), '')
    writeFileSync(join(path, 'lock'), '')
    const before = stateOf(path)
    expect(() => openDataDir(path)).toThrow(
      `DATA_DIR ${path} was written by an earlier, unreleased version: move it away or start with an empty directory. Nothing was changed.`,
    )
    expect(stateOf(path)).toEqual(before)
  },
)

test('a directory of a newer version is refused and not changed', async () => {
  const path = await temporaryDirectory()
  openDataDir(path).release()
  writeFileSync(join(path, 'format'), '2\n')
  const before = stateOf(path)
  expect(() => openDataDir(path)).toThrow(`DATA_DIR ${path} has format 2, of a newer version`)
  expect(stateOf(path)).toEqual(before)
  rmSync(join(path, 'holder'))
  expect(() => openDataDir(path)).toThrow('of a newer version')
})
