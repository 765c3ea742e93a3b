import { expect } from 'bun:test'
import { type Frame, lastSeqOf } from '../../src/stores/journal/journal.ts'
import { runRef } from './events.ts'
import { appendMarks, framesAfter, gapsOf, NatsRig, textOf } from './journals.ts'
import { natsConnection, natsServer } from './nats.ts'
import type { Random } from './random.ts'
import { runRow, taskRow } from './rows.ts'
import { replaceStream, type StoredMessage, storedMessages } from './stream-damage.ts'

/** Most commits are larger, and become groups of messages. */
const MAX_PAYLOAD = 4 * 1024

/**
 * Repeatedly damages a journal's stream in random ways and opens it. Every commit whose messages are intact must be read
 * back unchanged, nothing else may be, positions must continue right after the last one, and the gaps must be exactly
 * what is missing.
 */
export async function corruptStreams(random: Random, rounds: number): Promise<void> {
  const server = await natsServer(MAX_PAYLOAD)
  const rig = new NatsRig(await natsConnection([server]))
  const base = await buildBase(rig, random)
  expect(base.messages.length).toBeGreaterThan(base.commits.length * 1.5)
  for (let round = 0; round < rounds; round++) {
    const how = Array.from({ length: random.int(1, 3) }, () => random.pick(Object.keys(DAMAGES)))
    rig.gaps = []
    const damaged = await replaceStream(rig, () =>
      how.reduce((kept, name) => DAMAGES[name](kept, random), base.messages),
    )
    await check(rig, base, damaged, random).catch((error) => {
      throw new Error(`round ${round}, seed ${random.seed}: ${how.join(', ')}: ${error.message}`, { cause: error })
    })
  }
  await rig.nc.close()
  await server.kill()
}

interface Base {
  readonly messages: StoredMessage[]
  readonly endSeq: number
  /** Each commit: its messages, and what is read of it. */
  readonly commits: readonly { readonly at: number; readonly messages: number; readonly frames: readonly string[] }[]
  /** What is read of each frame, by its position. */
  readonly frames: ReadonlyMap<number, string>
}

async function buildBase(rig: NatsRig, random: Random): Promise<Base> {
  let journal = await rig.open({ tailBytes: 1 })
  const commits: { at: number; messages: number; frames: string[] }[] = []
  for (let commit = 0; commit < 24; commit++) {
    if (commit % 9 === 8) {
      await journal.close()
      journal = await rig.open({ tailBytes: 1 })
    }
    if (commit % 7 === 6) await journal.cut()
    const [before, { endSeq }] = [(await storedMessages(rig)).length, journal]
    const appends: Promise<unknown>[] = [
      appendMarks(journal, Array(random.int(1, 4)).fill(commit), runRef(), random.pick([0, 0, 2_000, 6_000])),
    ]
    if (random.bool(0.4)) appends.push(journal.appendRuns([runRow(runRef())], [Bun.randomUUIDv7()]))
    if (random.bool(0.4)) appends.push(journal.appendTasks([taskRow(runRef())], [Bun.randomUUIDv7()]))
    await Promise.all(appends)
    const frames = (await journal.read(endSeq, 1e6)).map(textOf)
    commits.push({ at: before, messages: (await storedMessages(rig)).length - before, frames })
  }
  const frames = new Map((await framesAfter(journal)).map((frame) => [frame.firstSeq, textOf(frame)]))
  const { endSeq } = journal
  await journal.close()
  return { messages: await storedMessages(rig), endSeq, commits, frames }
}

const DAMAGES: Record<string, (messages: StoredMessage[], random: Random) => StoredMessage[]> = {
  'changed payload': (messages, random) => {
    const index = random.int(0, messages.length - 1)
    const data = Buffer.from(messages[index].data)
    data[random.int(0, data.length - 1)] ^= 1 << random.int(0, 7)
    return messages.with(index, { ...messages[index], data })
  },
  'shortened payload': (messages, random) => {
    const index = random.int(0, messages.length - 1)
    const data = messages[index].data.subarray(0, random.int(0, messages[index].data.length - 1))
    return messages.with(index, { ...messages[index], data })
  },
  'changed header': (messages, random) => {
    const index = random.int(0, messages.length - 1)
    const head = messages[index].head.replace(/\d+/, () => String(random.int(0, 1_000_000)))
    return messages.with(index, { ...messages[index], head })
  },
  swap: (messages, random) => {
    const [a, b] = [random.int(0, messages.length - 1), random.int(0, messages.length - 1)]
    return messages.with(a, messages[b]).with(b, messages[a])
  },
  copy: (messages, random) => messages.with(random.int(0, messages.length - 1), random.pick(messages)),
  removal: (messages, random) => messages.toSpliced(random.int(0, messages.length - 1), 1),
  foreign: (messages, random) =>
    messages.with(random.int(0, messages.length - 1), { data: Buffer.from('hello'), head: '' }),
  'lost end': (messages, random) => messages.slice(0, random.int(1, messages.length)),
}

async function check(rig: NatsRig, base: Base, damaged: readonly StoredMessage[], random: Random): Promise<void> {
  const isIntact = (index: number) => {
    const [is, was] = [damaged[index], base.messages[index]]
    return is !== undefined && is.head === was.head && Buffer.from(is.data).equals(was.data)
  }
  const intact = base.commits.filter(({ at, messages }) =>
    Array.from({ length: messages }, (_, i) => at + i).every(isIntact),
  )
  // What other stores have seen of the log.
  const decideStart = async () => ({ afterSeq: base.endSeq, loadedSeq: 0, newEpoch: false })
  const owner = await rig.open({ decideStart, tailBytes: 1 })
  expect(owner.endSeq).toBe(base.endSeq)
  expect(await appendMarks(owner, [99])).toEqual({ firstSeq: base.endSeq + 1, lastSeq: base.endSeq + 1 })
  const reader = await rig.read({ tailBytes: 1 })
  const found: string[][] = []
  for (const journal of [owner, reader]) {
    const frames = await framesAfter(journal)
    const texts = frames.map(textOf)
    expect(intact.flatMap((commit) => commit.frames).filter((text) => !texts.includes(text))).toEqual([])
    const old = frames.slice(0, -1)
    expect(old.filter((frame) => base.frames.get(frame.firstSeq) !== textOf(frame))).toEqual([])
    const gaps = gapsOf(journal)
    // A log of which nothing is left may be a new one, whose positions continue those of another.
    if (old.length > 0 || gaps.length > 0) expect(gaps).toEqual(missing(frames))
    const from = random.int(0, base.endSeq)
    const next = frames.find((frame) => lastSeqOf(frame) > from)
    expect((await journal.read(from, 1))[0]?.firstSeq ?? 0).toBe(next?.firstSeq ?? 0)
    found.push(texts)
  }
  expect(found[0]).toEqual(found[1])
  await reader.close()
  await owner.close()
}

/** The ranges of positions without a frame. */
function missing(frames: readonly Frame[]): [number, number][] {
  const gaps: [number, number][] = []
  let end = 0
  for (const frame of frames) {
    if (frame.firstSeq > end + 1) gaps.push([end, frame.firstSeq - 1])
    end = lastSeqOf(frame)
  }
  return gaps
}
