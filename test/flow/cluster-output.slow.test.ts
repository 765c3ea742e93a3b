import { beforeAll, describe, expect, test } from 'bun:test'
import { createLog } from '../../src/base/log.ts'
import { connectPostgres, type Sql } from '../../src/stores/postgres/connect.ts'
import { createApi } from '../support/api.ts'
import { ownedEvenly, startCluster, stateOf, type TestCluster } from '../support/cluster.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'
import { eventually } from '../support/eventually.ts'
import { type OutputFrame, OutputReader, type StreamOptions, untilStatus } from '../support/hosted.ts'
import { type Backends, startBackends } from '../support/hosted-rig.ts'
import { stepOf } from '../support/model-server.ts'
import { hasNats } from '../support/nats.ts'
import { type PacedText, pacedText } from '../support/paced-text.ts'
import { freshDatabase } from '../support/postgres.ts'
import { type SpawnedService, spawnService } from '../support/service.ts'
import { type TcpProxy, tcpProxy } from '../support/tcp-proxy.ts'
import { atEnd } from '../support/teardown.ts'

/** Output streams at nodes that do not execute the run (docs/cluster.md#output-streams), as processes, with real stores. */

const WORDS = ['One ', 'two ', 'three ', 'four.']
const written = (pieces: number) => WORDS.slice(0, pieces).join('')

let backends: Backends

beforeAll(() => {
  backends = startBackends()
})

/** The text of each step and all other frames, however the text was split into chunks. */
function contentOf(frames: readonly OutputFrame[]) {
  const texts: Record<number, string> = {}
  for (const { event, data } of frames)
    if (event === 'chunk') texts[data.step] = (texts[data.step] ?? '').slice(0, data.offset) + data.delta
  return { texts, rest: frames.filter(({ event }) => event !== 'chunk') }
}

type Node = Pick<SpawnedService, 'url' | 'workspaceKey' | 'api'>

interface Started {
  readonly runId: string
  /** The answers that the model was asked for, oldest first. */
  readonly answers: readonly PacedText[]
}

/** Starts a run that `node` executes: first a call of a tool, then an answer of the test's pace. */
async function startRun(node: Node): Promise<Started> {
  const answers: PacedText[] = []
  const script = (request: Parameters<typeof stepOf>[0]) => {
    if (stepOf(request) === 0)
      return { text: 'Counting. ', toolCalls: [{ name: 'look', arguments: { n: 1 }, id: 'a' }] }
    answers.push(pacedText(WORDS))
    return answers.at(-1)!.turn
  }
  const agent = await backends.agent(node, script, { tools: [backends.tools.tool('look')] })
  const invoked = await agent.stream({ input: { message: 'Count.' } })
  await eventually(() => answers.length > 0)
  const runId = await invoked.runId()
  invoked.close()
  return { runId, answers }
}

/** Lets the model write, and waits until all readers have exactly this much of its answer. */
async function untilWritten({ answers }: Started, readers: readonly OutputReader[], pieces: number): Promise<void> {
  await eventually(() => {
    // Another node may have taken the run over and asked again.
    answers.at(-1)?.allow(pieces)
    const ended = readers.find((reader) => reader.ended !== undefined)
    if (ended !== undefined) throw new Error(`a stream ended: ${ended.text}`)
    return readers.every((reader) => reader.textOf(2) === written(pieces))
  })
}

/** Lets the model finish. */
const finish = ({ answers }: Started) => answers.at(-1)!.finish()

const follow = ({ url, workspaceKey }: Node, runId: string, options?: StreamOptions) =>
  OutputReader.ofRun({ url, workspaceKey }, runId, options)

async function instanceOf(node: SpawnedService): Promise<string> {
  const { nodes } = await stateOf(node)
  return nodes.find(({ is_this }) => is_this)!.instance_id
}

function openSql(databaseUrl: string): Sql {
  const sql = connectPostgres(databaseUrl, { log: createLog('error'), max: 1 })
  atEnd(() => sql.end({ timeout: 1 }))
  return sql
}

async function executorOf(sql: Sql, runId: string): Promise<string | null> {
  const [row] = await sql<{ owner: string | null }[]>`select owner from hosted_runs where run_id = ${runId}`
  return row?.owner ?? null
}

describe.skipIf(!hasNats)('three nodes', () => {
  let cluster: TestCluster
  let sql: Sql

  beforeAll(async () => {
    cluster = await startCluster({ env: backends.env })
    await ownedEvenly(cluster.nodes[0], 3)
    sql = openSql(cluster.databaseUrl)
  })

  test('each of them streams an answer while the model writes it, with the same frames', async () => {
    const run = await startRun(cluster.nodes[0])
    expect(await executorOf(sql, run.runId)).toBe(await instanceOf(cluster.nodes[0]))
    const readers = await Promise.all(cluster.nodes.map((node) => follow(node, run.runId)))
    for (let pieces = 1; pieces <= WORDS.length; pieces++) await untilWritten(run, readers, pieces)
    finish(run)
    const [local, ...remote] = await Promise.all(readers.map(async (reader) => contentOf(await reader.all())))
    expect(local.texts).toEqual({ 1: 'Counting. ', 2: written(4) })
    expect(local.rest.map(({ event, data }) => data.phase ?? event)).toEqual(['started', 'finished', 'done'])
    for (const each of remote) expect(each).toEqual(local)
    expect(new Set(readers.map(({ frames }) => frames.findLast(({ event }) => event === 'chunk')?.id)).size).toBe(1)
  })

  test('a client resumes at any of them after any frame, while the model writes and after the end', async () => {
    const run = await startRun(cluster.nodes[1])
    const { runId } = run
    const first = await follow(cluster.nodes[0], runId)
    for (let pieces = 1; pieces <= 3; pieces++) await untilWritten(run, [first], pieces)
    first.close()
    const seen = first.frames
    const resumed: { readonly index: number; readonly reader: OutputReader }[] = []
    for (const [index, { id }] of seen.entries())
      for (const node of cluster.nodes) resumed.push({ index, reader: await follow(node, runId, { after: id }) })
    const whole = contentOf(seen)
    for (const { index, reader } of resumed) {
      const all = () => contentOf([...seen.slice(0, index + 1), ...reader.frames])
      await reader.until(() => Bun.deepEquals(all(), whole))
    }
    finish(run)
    const complete = contentOf(await (await follow(cluster.nodes[2], runId)).all())
    expect(complete.texts[2]).toBe(written(4))
    for (const { index, reader } of resumed)
      expect(contentOf([...seen.slice(0, index + 1), ...(await reader.all())])).toEqual(complete)
    for (const [index, { id }] of seen.entries()) {
      const late = await follow(cluster.nodes[index % 3], runId, { after: id })
      expect(contentOf([...seen.slice(0, index + 1), ...(await late.all())])).toEqual(complete)
    }
  })

  test('a pause ends the streams of all of them, and a decision at another one continues there', async () => {
    const answers: PacedText[] = []
    const script = (request: Parameters<typeof stepOf>[0]) => {
      answers.push(
        pacedText(WORDS, stepOf(request) === 0 ? { toolCalls: [{ name: 'look', arguments: { n: 1 }, id: 'a' }] } : {}),
      )
      return answers.at(-1)!.turn
    }
    const tool = backends.tools.tool('look', { requires_approval: true })
    const agent = await backends.agent(cluster.nodes[0], script, { tools: [tool] })
    const invoked = await agent.stream()
    await eventually(() => answers.length === 1)
    answers[0].allow(2)
    const runId = await invoked.runId()
    const readers = await Promise.all(cluster.nodes.map((node) => follow(node, runId)))
    for (const reader of readers) await reader.until(() => reader.textOf() === written(2))
    answers[0].finish()
    const [local, ...remote] = await Promise.all(readers.map(async (reader) => contentOf(await reader.all())))
    expect(local.rest.map(({ event }) => event)).toEqual(['awaiting_approval'])
    for (const each of remote) expect(each).toEqual(local)
    const { approval_id } = local.rest[0].data
    const decided = await OutputReader.open(cluster.nodes[2], `/api/v1/approvals/${approval_id}/approve`, {
      method: 'POST',
      body: { stream: true },
    })
    const elsewhere = await follow(cluster.nodes[1], runId, { after: readers[1].frames.at(-1)!.id })
    await eventually(() => answers.length === 2)
    answers[1].allow(1)
    for (const reader of [decided, elsewhere]) await reader.until(() => reader.textOf(2) === written(1))
    answers[1].finish()
    expect(contentOf(await elsewhere.all())).toEqual(contentOf(await decided.all()))
  })

  test('a revoked key ends the streams at nodes that do not execute the run; the others go on', async () => {
    const run = await startRun(cluster.nodes[0])
    const { data } = await cluster.nodes[0].api('POST', '/api/v1/keys', { name: 'k' })
    const revoked = await follow(cluster.nodes[1], run.runId, { key: data.key })
    const other = await follow(cluster.nodes[1], run.runId)
    await untilWritten(run, [revoked, other], 1)
    await cluster.nodes[2].api('POST', `/api/v1/keys/${data.key_id}/revoke`, {})
    await revoked.all()
    finish(run)
    expect(contentOf(await other.all()).rest.at(-1)?.event).toBe('done')
    expect(revoked.textOf(2)).toBe(written(1))
  })

  test('the route between nodes does not exist for other clients', async () => {
    const run = await startRun(cluster.nodes[0])
    const path = `/internal/runs/${run.runId}/output`
    const plain = await cluster.nodes[0].api('GET', path)
    expect([plain.status, plain.error?.message]).toEqual([404, `no route GET "${path}"; GET /docs lists them all`])
    const claim = Buffer.from(JSON.stringify({ caller: {}, bodyDigest: '', at: Date.now() })).toString('base64url')
    const headers = { 'x-cluster-forwarded': `${claim}.${'A'.repeat(43)}` }
    expect((await cluster.nodes[0].api('GET', path, undefined, { headers })).status).toBe(401)
    finish(run)
    await untilStatus(cluster.nodes[0], run.runId, 'completed')
  })
})

describe.skipIf(!hasNats)('losses', () => {
  test.each([
    ['killed', 'SIGKILL'],
    ['paused', 'SIGSTOP'],
  ] as const)(
    'when the executing node is %s in the middle of an answer, the streams go on at the one that takes over',
    async (_, signal) => {
      const cluster = await startCluster({ env: backends.env })
      await ownedEvenly(cluster.nodes[0], 3)
      const sql = openSql(cluster.databaseUrl)
      const [first, victim, last] = cluster.nodes
      const others = [first, last]
      const run = await startRun(victim)
      const readers = await Promise.all(others.map((node) => follow(node, run.runId)))
      await untilWritten(run, readers, 3)
      const seen = readers[0].frames.length
      victim.kill(signal)
      await eventually(() => run.answers.length > 1)
      expect(await Promise.all(others.map(instanceOf))).toContain((await executorOf(sql, run.runId))!)
      // The model is asked again: its new answer replaces the earlier one, word by word.
      for (let pieces = 1; pieces <= 2; pieces++) await untilWritten(run, readers, pieces)
      finish(run)
      const [a, b] = await Promise.all(readers.map(async (reader) => contentOf(await reader.all())))
      expect(a.texts).toEqual({ 1: 'Counting. ', 2: written(4) })
      expect(a.rest.map(({ event, data }) => data.phase ?? event)).toEqual(['started', 'finished', 'done'])
      expect(b).toEqual(a)
      const again = readers[0].frames.slice(seen).filter(({ event }) => event === 'chunk')
      expect(again[0].data.offset).toBe(0)
      victim.kill('SIGCONT')
    },
  )

  test('while the executing node cannot be reached, a stream has the text at the end, and goes on once it can', async () => {
    let proxy: TcpProxy | undefined
    const instancePortOf = async (node: number, port: number) => {
      if (node !== 0) return port
      proxy = await tcpProxy({ port })
      return proxy.port
    }
    const cluster = await startCluster({ nodes: 2, env: backends.env, instancePortOf })
    const [executing, other] = cluster.nodes
    const first = await startRun(executing)
    const reader = await follow(other, first.runId)
    await untilWritten(first, [reader], 1)
    proxy?.cut()
    const late = await follow(other, first.runId)
    finish(first)
    for (const each of [reader, late]) {
      expect(contentOf(await each.all()).texts).toEqual({ 1: 'Counting. ', 2: written(4) })
      expect(each.of('done')).toHaveLength(1)
    }
    const second = await startRun(executing)
    const healed = await follow(other, second.runId)
    proxy?.heal()
    await untilWritten(second, [healed], 2)
    finish(second)
    expect(contentOf(await healed.all()).rest.at(-1)?.event).toBe('done')
  })

  test('an executing node that shuts down gracefully ends the outputs it serves, and the streams continue at the other node', async () => {
    const cluster = await startCluster({ nodes: 2, env: backends.env })
    const [executing, other] = cluster.nodes
    const run = await startRun(executing)
    const reader = await follow(other, run.runId)
    await untilWritten(run, [reader], 2)
    executing.kill('SIGTERM')
    await eventually(() => run.answers.length > 1)
    await untilWritten(run, [reader], 1)
    finish(run)
    expect(contentOf(await reader.all()).rest.at(-1)?.event).toBe('done')
    expect(await executing.exited).toBe(0)
  })
})

test('a worker streams the output of a run that another one executes, also to the caller that invoked it', async () => {
  const [{ url: DATABASE_URL }, { url: CLICKHOUSE_URL }] = await Promise.all([freshDatabase(), freshColumnarDatabase()])
  const service = await spawnService({
    ...backends.env,
    ...{ DATABASE_URL, CLICKHOUSE_URL, WORKERS: '2', JOURNAL_PARTITIONS: '2', HOSTED_RUNS_AT_ONCE: '1' },
  })
  await ownedEvenly(service, 2)
  const sql = openSql(DATABASE_URL)
  const { workspaceKey } = service
  const { nodes } = await stateOf(service)
  const workers = nodes.map(({ url }): Node => ({ url, workspaceKey, api: createApi(url, workspaceKey) }))
  const executors: string[] = []
  const runs: Started[] = []
  // Each executes one run at a time, so the second run goes to the other worker.
  for (let n = 0; n < 2; n++) {
    runs.push(await startRun(workers[0]))
    executors.push((await executorOf(sql, runs[n].runId))!)
  }
  expect(executors.toSorted()).toEqual(nodes.map(({ instance_id }) => instance_id).toSorted())
  for (const run of runs) {
    const readers = await Promise.all(workers.map((worker) => follow(worker, run.runId)))
    for (let pieces = 1; pieces <= WORDS.length; pieces++) await untilWritten(run, readers, pieces)
    finish(run)
    const [one, other] = await Promise.all(readers.map(async (reader) => contentOf(await reader.all())))
    expect(one.rest.at(-1)?.event).toBe('done')
    expect(other).toEqual(one)
  }
})
