import { join } from 'node:path'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { freePorts } from '../../../support/processes.ts'
import { temporaryDirectory } from '../../../support/teardown.ts'
import { debianProgram } from '../install.ts'
import { isListening, startPeerProcess, versionOf } from '../process.ts'
import { type AppendPeer, connectionPlans } from './appender.ts'
import { callsOf } from './events.ts'

const [STREAM, SUBJECT] = ['EVENTS', 'events']
/** The first with `sync_interval: always`. */
const SYNCED_SINCE = 2.1

/** NATS JetStream with file storage. A message holds one event, or all events of a call. */
export const nats: AppendPeer = {
  name: 'nats',
  async start(cache) {
    const { path, env } = await debianProgram(cache, 'nats-server')
    const version = await versionOf([path, '--version'], env)
    const [major, minor] = version.split('.').map(Number) as [number, number]
    const isSynced = major + minor / 100 >= SYNCED_SINCE
    const [port] = freePorts(1) as [number]
    const cwd = await temporaryDirectory()
    const config = join(cwd, 'nats.conf')
    const store = `store_dir: ${JSON.stringify(cwd)}`
    await Bun.write(config, `jetstream { ${store}${isSynced ? ', sync_interval: always' : ''} }\n`)
    const command = [path, '-c', config, '-a', '127.0.0.1', '-p', `${port}`]
    const server = await startPeerProcess(command, { cwd, env, isReady: () => isListening(port) })
    const connection = await connect({ port })
    const manager = await jetstreamManager(connection)
    await manager.streams.add({ name: STREAM, subjects: [SUBJECT], storage: 'file' })
    const way = (name: string, eventsPerCall: number, messages: number) => ({
      ...{ name, eventsPerCall, recordsPerCall: messages },
      plan: (connections: number) => ({
        protocol: 'nats' as const,
        target: { port },
        connections: connectionPlans(
          connections,
          (index) =>
            callsOf(index, eventsPerCall).map((events) =>
              requestOf(messages === eventsPerCall ? events : [events], index),
            ),
          (index) => `CONNECT {"verbose":false,"pedantic":false}\r\nSUB ${inbox(index)} 1\r\nPING\r\n`,
        ),
        answerParts: messages,
      }),
    })
    return {
      title: `NATS JetStream ${version}`,
      durability: isSynced
        ? 'sync_interval: always: synced before the acknowledgement'
        : 'written, **not synced** before the acknowledgement (synced every 2 minutes; sync_interval came with 2.10)',
      sql: 'not in SQL',
      ways: [
        way('100 publishes in one write, all acknowledged', 100, 100),
        way('one message of 100 events', 100, 1),
        way('publish', 1, 1),
      ],
      stored: async () => (await manager.streams.info(STREAM)).state.messages,
      async stop() {
        await connection.close()
        await server.stop()
      },
    }
  },
}

function inbox(connection: number): string {
  return `_INBOX.bench.${connection}`
}

function requestOf(records: readonly object[], connection: number): string {
  return records
    .map((record) => {
      const text = JSON.stringify(record)
      return `PUB ${SUBJECT} ${inbox(connection)} ${Buffer.byteLength(text)}\r\n${text}\r\n`
    })
    .join('')
}
