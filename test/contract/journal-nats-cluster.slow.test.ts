import { describe, expect, test } from 'bun:test'
import { jetstreamManager } from '@nats-io/jetstream'
import type { NatsConnection } from '@nats-io/transport-node'
import type { LogJournal } from '../../src/stores/journal/log/log-journal.ts'
import { eventually } from '../support/eventually.ts'
import { JournalLoad, openAgain, Watcher } from '../support/journal-load.ts'
import { NatsRig } from '../support/journals.ts'
import { hasNats, type NatsServer, natsCluster, natsConnection } from '../support/nats.ts'
import { seededRandom } from '../support/random.ts'

/** A journal on three replicated servers, of which one at a time fails in every way. */

const ROUNDS = 6

async function leaderOf(nc: NatsConnection, stream: string): Promise<string | undefined> {
  const jsm = await jetstreamManager(nc, { checkAPI: false, timeout: 1_000 })
  const info = await jsm.streams.info(stream).catch(() => undefined)
  return info?.cluster?.leader
}

describe.skipIf(!hasNats)('a journal on three servers', () => {
  test('loses and doubles nothing while leaders move, servers are killed or stall, and owners change', async () => {
    const servers = await natsCluster()
    const random = seededRandom('journal cluster')
    const rig = new NatsRig(await natsConnection(servers), 3)
    let journal = await openAgain(rig)
    // Each reader is connected to another server first.
    const readers = await Promise.all(
      servers.map(async (_, index) => {
        const nc = await natsConnection([...servers.slice(index), ...servers.slice(0, index)])
        return rig.read({ nc, tailBytes: 20_000 })
      }),
    )
    const watchers = readers.map((reader) => new Watcher(reader))
    const load = new JournalLoad(journal)
    load.start()
    for (let round = 0; round < ROUNDS; round++) {
      await load.progress(10)
      await faults[round % faults.length](rig, servers, random.pick(servers))
      journal = await ownerOf(rig, journal, load)
      await load.progress(10)
    }
    await load.stop()
    await load.verify(journal)
    for (const watcher of watchers) await watcher.verify(journal)
    expect(rig.gaps).toEqual([])
    await journal.close()
    const last = await openAgain(rig)
    await load.verify(last)
    await last.close()
    for (const reader of readers) await reader.close()
  })
})

/** The present owner, or the next one when it has lost the stream. */
async function ownerOf(rig: NatsRig, journal: LogJournal, load: JournalLoad): Promise<LogJournal> {
  const enough = load.acknowledged.size + 10
  const losses = rig.lost.length
  await eventually(() => load.acknowledged.size >= enough || rig.lost.length > losses || isLost(journal))
  if (load.acknowledged.size >= enough) return journal
  await journal.close()
  const next = await openAgain(rig)
  load.use(next)
  return next
}

const isLost = (journal: LogJournal) =>
  journal.check().then(
    () => false,
    () => true,
  )

type Fault = (rig: NatsRig, servers: readonly NatsServer[], any: NatsServer) => Promise<void>

const faults: readonly Fault[] = [
  // The leader of the stream steps down.
  async (rig, servers) => {
    const nc = await natsConnection(servers)
    await nc.request(`$JS.API.STREAM.LEADER.STEPDOWN.${rig.stream}`, '')
    await nc.close()
  },
  // The leader is killed, and comes back.
  async (rig, servers) => {
    const nc = await natsConnection(servers)
    const name = await eventually(async () => (await leaderOf(nc, rig.stream)) ?? false)
    await nc.close()
    const leader = servers.find((server) => server.name === name)
    await leader?.kill()
    await Bun.sleep(500)
    await leader?.start()
  },
  // Any server stalls for some seconds.
  async (_rig, _servers, server) => {
    server.pause()
    await Bun.sleep(3_000)
    server.resume()
  },
]
