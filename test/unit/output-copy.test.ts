import { afterEach, describe, expect, test } from 'bun:test'
import { type RunIdentity, runKey } from '../../src/base/ids.ts'
import { createLog } from '../../src/base/log.ts'
import { Connections } from '../../src/feeds/live/connections.ts'
import { FollowedOutputs as Followed, type FollowedOutputsDeps } from '../../src/hosted/output/followed-outputs.ts'
import { framesAfter, OUTPUT_START, OutputLog } from '../../src/hosted/output/output-log.ts'
import { ServedOutputs } from '../../src/hosted/output/served-outputs.ts'
import type { Caller } from '../../src/tenants/keys/schema.ts'
import { eventually } from '../support/eventually.ts'
import { type Random, seededRandom } from '../support/random.ts'
import { usageRecord } from '../support/usage.ts'

/** How a process follows the output of a run that another one executes (docs/architecture.md#several-nodes). */

const CALLER: Caller = { keyId: 'k', type: 'workspace', workspaceId: 'w', partition: 0, agentId: null }
const log = createLog('silent')
const SLOW_CONSUMER_MS = 60_000
/** Connections between processes, at both ends. */
const ROOM = 100

const opened: Connections[] = []
afterEach(() => {
  for (const connections of opened.splice(0)) connections.stop()
})

/** Two processes, one of which executes runs, without a network or a database between them. */
function twoProcesses({
  slowConsumerMs = SLOW_CONSUMER_MS,
  ...more
}: Partial<FollowedOutputsDeps> & { slowConsumerMs?: number } = {}) {
  const executed = new Map<string, OutputLog>()
  const executors = new Map<string, string>()
  const requests: string[] = []
  const available: string[] = []
  const state = { isReachable: true }
  const rounds: (() => Promise<unknown>)[] = []
  const loops = {
    repeat: (_name: string, _ms: number, work: (signal: AbortSignal) => Promise<unknown>) => {
      rounds.push(() => work(new AbortController().signal))
      return async () => {}
    },
  }
  const scheduler = {
    outputOf: ({ workspaceId, runId }: RunIdentity) => executed.get(runKey(workspaceId, runId)),
    change: async () => {},
  }
  const room = { here: ROOM, there: ROOM }
  const connectionsOf = (side: keyof typeof room) => {
    const connections = new Connections({
      ring: { credentialState: () => 'valid', onKeysInvalidated: () => () => {} },
      limits: {
        get connections() {
          return room[side]
        },
        connectionsPerWorkspace: 0,
      },
      log,
    })
    opened.push(connections)
    return connections
  }
  const served = new ServedOutputs({ connections: connectionsOf('there'), slowConsumerMs, loops }, scheduler)
  const followed = new Followed({
    peers: {
      async get(instanceId, path, { workspaceId }, signal) {
        requests.push(`${instanceId} ${path}`)
        if (!state.isReachable) throw new Error('unreachable')
        const runId = path.split('/')[3]
        const response = await served.open({ workspaceId, runId }, signal)
        if (response === null) return new Response(null, { status: 404 })
        return new Response(response.body?.pipeThrough(new TransformStream(), { signal }))
      },
    },
    executorsOf: async () => executors,
    owner: 'here',
    runsMax: 10,
    connections: connectionsOf('here'),
    onAvailable: ({ runId }) => void available.push(runId),
    log,
    loops,
    ...more,
  })
  const follow = (runId: string, executor = 'there') => followed.follow({ workspaceId: 'w', runId }, executor, CALLER)
  const copyOf = (runId: string) => followed.outputOf({ workspaceId: 'w', runId })
  return {
    state,
    room,
    requests,
    available,
    served,
    followed,
    follow,
    copyOf,
    /** What the loops of both do once a second. */
    round: () => Promise.all(rounds.map((work) => work())),
    execute(runId: string): OutputLog {
      const log = new OutputLog(runId)
      executed.set(runKey('w', runId), log)
      executors.set(runKey('w', runId), 'there')
      return log
    },
    moveTo(runId: string, executor: string) {
      executors.set(runKey('w', runId), executor)
    },
    followedCopy: (runId: string): Promise<OutputLog> =>
      eventually(
        () => {
          follow(runId)
          return copyOf(runId) ?? false
        },
        { intervalMs: 1 },
      ),
  }
}

const framesOf = (log: OutputLog) => framesAfter(log, OUTPUT_START).text

/** Adds random text and tools to a log, and waits a moment now and then, so that parts of it are sent. */
async function write(log: OutputLog, random: Random): Promise<void> {
  let frame = 0
  const pause = async () => {
    if (random.bool(0.2)) await Bun.sleep(0)
  }
  const steps = random.int(1, 4)
  for (let step = 1; step <= steps; step++) {
    for (let tries = random.int(1, 3); tries > 0; tries--) {
      log.beginText(step, `s${step}t${tries}`)
      for (let pieces = random.int(0, 6); pieces > 0; pieces--) {
        // A model may send half of a surrogate pair.
        log.addText(random.pick(['a', 'é\n', '🎉', '\ud83c', '\udf89', '"\\']))
        await pause()
      }
    }
    for (let tools = random.int(0, 3); tools > 0; tools--) {
      log.add({ kind: 'frame', step, part: 1, offset: ++frame, event: 'tool', data: `{"n":${frame}}` })
      await pause()
    }
  }
  // Readers do not see a text before its first piece.
  log.addText('the end')
}

describe('the copy of an output', () => {
  test('has the same frames with the same ids, whenever it begins', async () => {
    const random = seededRandom('output-copy')
    for (let round = 0; round < 40; round++) {
      const { execute, followedCopy } = twoProcesses()
      const log = execute('r')
      const writing = write(log, random)
      if (random.bool()) await Bun.sleep(0)
      const copy = await followedCopy('r')
      await writing
      await eventually(() => framesOf(copy) === framesOf(log), { intervalMs: 1 })
      expect(copy.items).toEqual(log.items)
    }
  })

  test('does not have the end: it closes, and its readers look at the rows', async () => {
    const { execute, followedCopy, copyOf } = twoProcesses()
    const log = execute('r')
    log.beginText(1, 'a')
    const copy = await followedCopy('r')
    log.addText('x')
    log.close(
      {
        kind: 'ended',
        status: 'completed',
        output: null,
        errorMessage: null,
        errorDetail: null,
        usage: usageRecord(1, 1),
      },
      null,
    )
    await eventually(() => copy.isClosed)
    expect(copy.items).toEqual(log.items.slice(0, 1))
    expect(framesAfter(copy, OUTPUT_START).isOver).toBe(false)
    expect(copyOf('r')).toBeUndefined()
  })

  test('is made once for all readers, and ends with the last one', async () => {
    const { execute, followedCopy, follow, requests, available, round, copyOf } = twoProcesses({ times: { idleMs: 0 } })
    execute('r')
    const copy = await followedCopy('r')
    const leave = copy.listen(() => {})
    follow('r')
    await round()
    expect([requests, available]).toEqual([['there /internal/runs/r/output'], ['r']])
    expect(copyOf('r')).toBe(copy)
    leave()
    await eventually(async () => {
      await round()
      return copy.isClosed && copyOf('r') === undefined
    })
  })

  test('ends when another process executes the run', async () => {
    const { execute, followedCopy, moveTo, round } = twoProcesses()
    execute('r')
    const copy = await followedCopy('r')
    await round()
    expect(copy.isClosed).toBe(false)
    moveTo('r', 'elsewhere')
    await round()
    await eventually(() => copy.isClosed)
  })

  test('ends when its executor is silent', async () => {
    const { execute, followedCopy, round, requests, follow } = twoProcesses({ times: { silenceMs: 0 } })
    execute('r')
    const copy = await followedCopy('r')
    copy.listen(() => {})
    await Bun.sleep(1)
    await round()
    await eventually(() => copy.isClosed)
    // It is left alone for a while.
    follow('r')
    expect(requests).toHaveLength(1)
  })
})

describe('following a run', () => {
  test('that this process executes itself, or beyond the limit, does nothing', async () => {
    const { execute, follow, followedCopy, requests } = twoProcesses({ runsMax: 2 })
    for (const runId of ['a', 'b', 'c']) execute(runId)
    follow('a', 'here')
    expect(requests).toHaveLength(0)
    await followedCopy('a')
    await followedCopy('b')
    follow('c')
    expect(requests).toHaveLength(2)
  })

  test('at a process that cannot be reached fails quietly, and leaves it alone for a while', async () => {
    const { execute, follow, requests, state, copyOf } = twoProcesses()
    for (const runId of ['a', 'b']) execute(runId)
    state.isReachable = false
    follow('a')
    await Bun.sleep(0)
    for (const runId of ['a', 'b']) follow(runId)
    expect(requests).toEqual(['there /internal/runs/a/output'])
    expect(copyOf('a')).toBeUndefined()
  })

  test('at a process that could not be reached succeeds once it can be', async () => {
    const { execute, follow, followedCopy, state } = twoProcesses({ times: { avoidMs: 0 } })
    execute('a')
    state.isReachable = false
    follow('a')
    await Bun.sleep(1)
    state.isReachable = true
    expect((await followedCopy('a')).isClosed).toBe(false)
  })

  test('needs room for a connection at both processes, and gives it back', async () => {
    const { execute, follow, followedCopy, copyOf, room, requests } = twoProcesses()
    const [a] = ['a', 'b'].map(execute)
    room.here = 0
    follow('a')
    expect(requests).toHaveLength(0)
    room.here = 1
    room.there = 0
    await eventually(() => {
      follow('a')
      return requests.length > 1
    })
    expect(copyOf('a')).toBeUndefined()
    room.there = 1
    const copy = await followedCopy('a')
    follow('b')
    expect(copyOf('b')).toBeUndefined()
    a.close({ kind: 'released', status: 'running' }, null)
    await eventually(() => copy.isClosed)
    expect((await followedCopy('b')).isClosed).toBe(false)
  })

  test('that ended a moment ago finds nothing, and may be tried again', async () => {
    const { execute, follow, followedCopy, requests } = twoProcesses()
    follow('r')
    await eventually(() => {
      follow('r')
      return requests.length > 1
    })
    execute('r')
    expect((await followedCopy('r')).isClosed).toBe(false)
  })
})

describe('serving an output', () => {
  const PIECE = 'x'.repeat(10_000)

  async function openLarge(slowConsumerMs: number) {
    const { served, execute, round } = twoProcesses({ slowConsumerMs })
    const log = execute('r')
    for (let step = 1; step <= 100; step++) {
      log.beginText(step, 'a')
      log.addText(PIECE)
    }
    const response = await served.open({ workspaceId: 'w', runId: 'r' }, new AbortController().signal)
    return { log, served, round, reader: response!.body!.getReader() }
  }

  test('queues no more than a part of it, and sends the rest as it is read', async () => {
    const { log, served, reader } = await openLarge(SLOW_CONSUMER_MS)
    // It was not queued, so it grows.
    log.addText(' and more')
    log.close({ kind: 'released', status: 'running' }, null)
    const decoder = new TextDecoder()
    let text = ''
    for (let next = await reader.read(); !next.done; next = await reader.read())
      text += decoder.decode(next.value, { stream: true })
    const lines = text.split('\n').filter((line) => line !== '')
    const contents = lines.map((line) => JSON.parse(line).content)
    expect(contents).toEqual([...Array(99).fill(PIECE), `${PIECE} and more`])
    await served.stop()
  })

  test('cuts off a process that does not read', async () => {
    const { round, reader } = await openLarge(0)
    await Bun.sleep(1)
    await round()
    await expect(reader.read()).rejects.toThrow('does not read')
  })

  test('ends all responses when the process stops, and begins no other', async () => {
    const { served, execute, followedCopy } = twoProcesses()
    execute('r')
    const copy = await followedCopy('r')
    await served.stop()
    await eventually(() => copy.isClosed)
    expect(await served.open({ workspaceId: 'w', runId: 'r' }, new AbortController().signal)).toBeNull()
  })
})
