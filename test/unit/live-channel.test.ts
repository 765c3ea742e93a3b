import { expect, test } from 'bun:test'
import { type Subscription, WorkspaceChannels } from '../../src/feeds/live/channel.ts'
import { parseFilter } from '../../src/feeds/live/filter.ts'
import type { Packet } from '../../src/feeds/live/packet.ts'
import { seededRandom } from '../support/random.ts'

/** Subscriptions of one channel that share packets, in shards. */

const workspaceId = crypto.randomUUID()
const filter = parseFilter({}, 'filter', { agentId: null, runId: null })
const packet = { firstSeq: 6, lastSeq: 7 } as Packet

/** Topics as Bun keeps them, and the number of packets sent to each subscription. */
function newChannel() {
  const topics = new Map<string, Set<Subscription>>()
  const sent = new Map<Subscription, number>()
  const channel = new WorkspaceChannels(workspaceId).add(filter)
  const subscribe = (key: string) => {
    const sharing = {
      key,
      connection: {
        isFull: false,
        enter: (topic: string) => void topics.set(topic, (topics.get(topic) ?? new Set()).add(subscription)),
        exit: (topic: string) => void topics.get(topic)!.delete(subscription),
        sent: () => {},
      },
      publish(topic: string) {
        for (const each of topics.get(topic)!) sent.set(each, (sent.get(each) ?? 0) + 1)
      },
    }
    const outlet = { send: () => true, gap() {}, caughtUp() {}, failed() {}, sharing }
    const subscription: Subscription = {
      ...{ channel, outlet, position: 5, promisedSeq: 5, state: 'live', shard: undefined },
    }
    channel.addLive(subscription)
    return subscription
  }
  return { channel, subscribe, sent }
}

test('every member gets each packet once while others join and leave, and shards stay few and small', () => {
  const random = seededRandom('live channel')
  const { channel, subscribe, sent } = newChannel()
  const members: Subscription[] = []
  for (let round = 0; round < 300; round++) {
    for (let n = random.int(0, 20); n > 0; n--) members.push(subscribe(random.pick(['"a"', '"b"'])))
    for (let n = random.int(0, 18); n > 0 && members.length > 0; n--)
      channel.removeLive(members.splice(random.int(0, members.length - 1), 1)[0]!)
    sent.clear()
    for (const shard of channel.shards) shard.send(packet)
    expect(sent).toEqual(new Map(members.map((member) => [member, 1])))
    expect(members.every(({ position }) => position === packet.lastSeq)).toBe(true)
    expect([...channel.shards].every(({ members: { size } }) => size > 0 && size <= 64)).toBe(true)
    expect(channel.liveMembers).toBe(members.length)
  }
  for (const member of members) channel.removeLive(member)
  expect([channel.liveMembers, channel.shards.size]).toEqual([0, 0])
})

test('many subscriptions need few shards', () => {
  const { channel, subscribe } = newChannel()
  const members = Array.from({ length: 130 }, () => subscribe('"a"'))
  expect([...channel.shards].map(({ members: { size } }) => size)).toEqual([64, 64, 2])
  channel.removeLive(members[0]!)
  for (let n = 0; n < 62; n++) subscribe('"a"')
  expect(channel.shards.size).toBe(3)
})
