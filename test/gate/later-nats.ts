import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { isOldNats, versionIn } from '../../src/stores/journal/nats/version.ts'
import { type Place, run } from './run.ts'

/** The release of Debian after the one whose NATS is older than docs/cluster.md asks for. */
const LATER = 'trixie'
const SOURCES = ['/etc/apt/sources.list', '/etc/apt/sources.list.d/debian.sources']

/**
 * Where NATS is older than 2.10, fetches that of a later Debian from the place that apt-get uses already: the older one
 * loses acknowledged messages now and then when its servers are killed under load, so that tests fail.
 * @returns a place that finds it first; `place` itself where it is not needed, or cannot be had
 */
export async function withLaterNats(place: Place, directory: string): Promise<Place> {
  const { output } = await run(['nats-server', '--version'], place, { isQuiet: true })
  if (!isOldNats(versionIn(output))) return place
  const cwd = join(directory, 'nats')
  mkdirSync(join(cwd, 'lists', 'partial'), { recursive: true })
  const texts = await Promise.all(
    SOURCES.map((path) =>
      Bun.file(path)
        .text()
        .catch(() => ''),
    ),
  )
  const address = /^(?:deb |URIs: )(\S+:\/\/\S+)/m.exec(texts.join('\n'))?.[1]
  await Bun.write(join(cwd, 'sources.list'), `deb ${address} ${LATER} main\n`)
  const options = [
    `Dir::Etc::SourceList=${cwd}/sources.list`,
    'Dir::Etc::SourceParts=/dev/null',
    `Dir::State::Lists=${cwd}/lists`,
    'Dir::Cache::pkgcache=',
    'Dir::Cache::srcpkgcache=',
    'APT::Sandbox::User=root',
  ].flatMap((option) => ['-o', option])
  const fetch = `apt-get -qq "$@" update && apt-get -qq "$@" download nats-server && dpkg -x nats-server_*.deb .`
  const { exitCode } = await run(['sh', '-c', fetch, 'sh', ...options], { ...place, cwd })
  if (exitCode !== 0) return place
  return { ...place, env: { ...place.env, PATH: `${cwd}/usr/sbin:${place.env.PATH}` } }
}
