import { expect, test } from 'bun:test'
import { type Activity, Client, type Gap } from '../../src/client/node.ts'
import { newAgent } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { freePort, spawnService, startTestService } from '../support/service.ts'

/** Feeds, queries and lists of the client library (docs/client.md#feeds). */

const NO_EXIT = { flushAtExit: false }

test('a feed continues where it stopped when the service is killed, and ends with its signal', async () => {
  const PORT = String(freePort())
  const first = await spawnService({ PORT, LOG_LEVEL: 'silent' })
  const { url, workspaceKey, dataDir } = first
  const { agentId, agentKey } = await newAgent(first.api)
  const owner = new Client({ url, key: workspaceKey, ...NO_EXIT })
  const agent = new Client({ url, key: agentKey, agentId, ...NO_EXIT })
  const stop = new AbortController()
  const seen: number[] = []
  const watching = (async () => {
    const feed = owner.feed({ kind: 'event', type: ['step', 'other.*'] }, { after: '0', signal: stop.signal })
    for await (const activity of feed) if (activity.kind === 'event') seen.push(Number(activity.event.payload.i))
  })()
  const run = agent.startRun()
  for (let i = 0; i < 20; i++) run.event('step', { i })
  await eventually(() => seen.length >= 20)
  first.kill('SIGKILL')
  await first.exited
  for (let i = 20; i < 40; i++) run.event('step', { i })
  const second = await spawnService({
    ...{ PORT, DATA_DIR: dataDir, BOOTSTRAP_WORKSPACE_KEY: workspaceKey, LOG_LEVEL: 'silent' },
  })
  await eventually(() => seen.length >= 40)
  stop.abort()
  await watching
  expect(seen).toEqual(Array.from({ length: 40 }, (_, i) => i))
  await agent.close()
  second.kill('SIGTERM')
  await second.exited
}, 120_000)

test('the feed of a run ends with the run; lists and queries read what was reported', async () => {
  const service = await startTestService()
  const { agentId, agentKey } = await newAgent(service.api, { name: 'reader' })
  const owner = new Client({ url: service.url, key: service.workspaceKey, ...NO_EXIT })
  const agent = new Client({ url: service.url, key: agentKey, agentId, ...NO_EXIT })
  const run = agent.startRun({ tags: ['listed'] })
  await agent.flush()
  const activities: (Activity | Gap)[] = []
  const following = (async () => {
    for await (const activity of owner.follow(run.runId, { after: '0' })) activities.push(activity)
  })()
  for (let i = 0; i < 450; i++) run.event('step', { i })
  run.complete({ done: true }, { usage: { input_tokens: 3, output_tokens: 4, cost_usd: 0.5 } })
  await agent.flush()
  await following
  expect(activities.filter(({ kind }) => kind === 'event')).toHaveLength(450)
  expect(activities.at(-1)).toMatchObject({ kind: 'run', run: { status: 'completed' } })

  const { rows, truncated } = await owner.query<{ n: number; total: number }>(
    'select count() as n, sum(payload.i::UInt32) as total from events where run_id = {run:UUID}',
    { run: run.runId },
    { waitFor: agent.stats.lastSeq },
  )
  expect([rows, truncated]).toEqual([[{ n: 450, total: (449 * 450) / 2 }], false])
  const numbers = await Array.fromAsync(owner.runs.events(run.runId), ({ payload }) => payload.i)
  expect(numbers).toEqual(Array.from({ length: 450 }, (_, i) => i))
  expect(await Array.fromAsync(owner.runs.conversation(run.runId), ({ parts }) => parts)).toEqual([
    [{ type: 'other', value: { done: true } }],
  ])
  expect(await Array.fromAsync(owner.runs.list({ tag: 'listed' }), ({ run_id }) => run_id)).toEqual([run.runId])
  expect(await Array.fromAsync(owner.agents.list(), ({ name }) => name)).toContain('reader')
  expect(await Array.fromAsync(owner.runs.tasks(run.runId))).toEqual([])
  expect(await owner.runs.get(run.runId)).toMatchObject({ usage: { input_tokens: 3 }, cost_usd: 0.5 })
  await expect(owner.query('selec 1')).rejects.toMatchObject({ status: 400, code: 'VALIDATION_ERROR' })
  await expect(owner.feed({ level: 'loud' as 'info' }).next()).rejects.toMatchObject({ status: 400 })
  await agent.close()
})
