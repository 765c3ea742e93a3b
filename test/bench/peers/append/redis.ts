import { connect } from 'node:net'
import { freePorts } from '../../../support/processes.ts'
import { temporaryDirectory } from '../../../support/teardown.ts'
import { debianProgram } from '../install.ts'
import { isListening, startPeerProcess, versionOf } from '../process.ts'
import { type AppendPeer, connectionPlans } from './appender.ts'
import { callsOf } from './events.ts'

const STREAM = 'events'

/** Redis Streams, with the append-only file synced before each answer. */
export const redis: AppendPeer = {
  name: 'redis',
  async start(cache) {
    const { path, env } = await debianProgram(cache, 'redis-server')
    const [port] = freePorts(1) as [number]
    const cwd = await temporaryDirectory()
    // The append-only file holds everything; snapshots beside it would only cost Redis time.
    const settings = ['--appendonly', 'yes', '--appendfsync', 'always', '--save', '', '--bind', '127.0.0.1']
    const command = [path, '--port', `${port}`, '--dir', cwd, ...settings]
    const server = await startPeerProcess(command, { cwd, env, isReady: () => isListening(port) })
    const way = (eventsPerCall: number) => ({
      name: eventsPerCall === 1 ? 'XADD' : `MULTI, ${eventsPerCall} XADD, EXEC in one write`,
      eventsPerCall,
      plan: (connections: number) => ({
        protocol: 'redis' as const,
        target: { port },
        connections: connectionPlans(connections, (index) => callsOf(index, eventsPerCall).map(requestOf)),
        // OK, QUEUED for each, the length of the list, and two lines for each id.
        answerParts: eventsPerCall === 1 ? 2 : 2 + 3 * eventsPerCall,
      }),
    })
    return {
      title: `Redis ${await versionOf([path, '--version'], env)} Streams`,
      durability:
        'appendfsync always: synced before the acknowledgement; one sync serves all calls of a loop iteration',
      sql: 'not in SQL; all events stay in memory',
      ways: [way(100), way(1)],
      stored: () => lengthOf(port),
      stop: server.stop,
    }
  },
}

function requestOf(records: readonly object[]): string {
  const adds = records.map((record) => resp('XADD', STREAM, '*', 'event', JSON.stringify(record)))
  return adds.length === 1 ? adds[0]! : [resp('MULTI'), ...adds, resp('EXEC')].join('')
}

/** A command in Redis' protocol. */
function resp(...words: readonly string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`
}

async function lengthOf(port: number): Promise<number> {
  const socket = connect(port, '127.0.0.1')
  socket.write(resp('XLEN', STREAM))
  for await (const chunk of socket) {
    socket.destroy()
    return Number(String(chunk).slice(1))
  }
  throw new Error('Redis closed the connection')
}
