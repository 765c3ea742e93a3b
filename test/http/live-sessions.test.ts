import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createLog } from '../../src/base/log.ts'
import { connectPostgres } from '../../src/stores/postgres/connect.ts'
import { eventually } from '../support/eventually.ts'
import {
  type Activity,
  LiveSocket,
  LiveStream,
  newReporter,
  newTenant,
  type Reporter,
  type Tenant,
} from '../support/feeds.ts'
import { Padding } from '../support/padding.ts'
import { dataOf, startTestService, type TestService } from '../support/service.ts'
import { atEnd } from '../support/teardown.ts'

/** Feeds of sessions and external users: docs/feeds.md#filters. */

const SESSION = 'chat 7'
const USER = 'user 7'
const OF_SESSION = `/api/v1/stream?session_id=${encodeURIComponent(SESSION)}`
/** The journal keeps no files once ClickHouse has their rows. */
const ENV = { JOURNAL_KEEP_BYTES: '0', RATE_LIMIT_EVENTS_PER_SECOND: '0' }

function database({ databaseUrl }: TestService) {
  const sql = connectPostgres(databaseUrl, { log: createLog('error'), max: 1 })
  atEnd(() => sql.end({ timeout: 1 }))
  return sql
}

/** What tells activities apart: the kind, and the name in the content. */
function shown(items: readonly Activity[]): string[] {
  return items.map(({ kind, event, task, run, ...rest }) => {
    const { score } = rest as { score?: { name: string } }
    return `${kind} ${event?.type ?? task?.name ?? score?.name ?? run?.status}`
  })
}

/** Everything of a run that a feed shows, with a name in the content. */
async function report(tenant: Tenant, agent: Reporter, runId: string, name: string): Promise<void> {
  await agent.events(runId, [{ type: name }])
  await agent.task(runId, { name, status: 'completed' })
  const score = { run_id: runId, name, value: 1 }
  const { status, text } = await tenant.api(
    'POST',
    '/api/ingest/v1/scores',
    { scores: [score] },
    { key: agent.agentKey },
  )
  expect(status, text).toBe(200)
}

const CONTENT = (name: string) => [`event ${name}`, `task ${name}`, `score ${name}`]
/** Recounts come when they come. */
const withoutRuns = (items: readonly Activity[]) => items.filter(({ kind }) => kind !== 'run')

test('a session has its runs with their events, tasks and scores, live and in each replay', async () => {
  const service = await startTestService(ENV)
  const [tenant, other] = [await newTenant(service), await newTenant(service)]
  const [agent, stranger] = [await newReporter(tenant.api), await newReporter(other.api)]
  const stream = await LiveStream.open(tenant, OF_SESSION)
  const socket = await LiveSocket.open(tenant)
  const filters = {
    session: { session_id: ['another', SESSION] },
    user: { external_user_id: USER },
    both: { session_id: SESSION, external_user_id: USER, kind: ['event', 'run'] },
    levels: { session_id: SESSION, level: 'error' },
  }
  for (const [id, filter] of Object.entries(filters)) await socket.subscribe(id, { filter })
  // So many filters that an index finds those that match.
  const many = await LiveSocket.open(tenant)
  for (let n = 0; n < 20; n++)
    await many.subscribe(`${n}`, { filter: { session_id: [SESSION, `${n}`], type: `type ${n % 2}` } })

  const runs = {
    mine: await agent.start({ session_id: SESSION, external_user_id: USER }),
    ofUser: await agent.start({ session_id: 'a chat', external_user_id: USER }),
    none: await agent.start(),
  }
  // Another workspace may have a run with the same id.
  const foreign = await stranger.start({ run_id: runs.none, session_id: SESSION, external_user_id: USER })
  await report(other, stranger, foreign, 'foreign')
  for (const [name, runId] of Object.entries(runs)) await report(tenant, agent, runId, name)
  await agent.events(runs.mine, [{ type: 'type 0' }, { type: 'type 1', level: 'error' }])
  for (const runId of Object.values(runs)) await agent.end(runId)

  const ofSession = [...CONTENT('mine'), 'event type 0', 'event type 1']
  const arrived = (items: readonly Activity[], ends: number) => () =>
    items.filter(({ run }) => run?.status === 'completed').length >= ends
  await stream.until(() => arrived(stream.items, 1)())
  await socket.until(() => arrived(socket.items('session'), 1)() && arrived(socket.items('user'), 2)())
  for (const items of [stream.items, socket.items('session')]) {
    expect(shown(withoutRuns(items)).sort()).toEqual([...ofSession].sort())
    expect(new Set(items.map(({ run_id }) => run_id))).toEqual(new Set([runs.mine]))
    expect(shown(items)).toContain('run running')
  }
  const ofUser = shown(withoutRuns(socket.items('user'))).sort()
  expect(ofUser).toEqual([...ofSession, ...CONTENT('ofUser')].sort())
  await socket.until(() => arrived(socket.items('both'), 1)() && socket.items('levels').length > 0)
  expect(shown(withoutRuns(socket.items('both')))).toEqual(['event mine', 'event type 0', 'event type 1'])
  expect(shown(socket.items('levels'))).toEqual(['event type 1'])
  await many.until(() => many.items('18').length > 0 && many.items('19').length > 0)
  expect([shown(many.items('18')), shown(many.items('19'))]).toEqual([['event type 0'], ['event type 1']])
  await Promise.all([many.close(), socket.close()])

  // Of a run that gets its session without a change of its record: no row in the journal or in ClickHouse has it.
  await database(service)`update runs set session_id = ${SESSION} where run_id = ${runs.ofUser}`
  await agent.events(runs.ofUser, [{ type: 'late' }])
  const all = (items: readonly Activity[]) => withoutRuns(items).map(({ cursor }) => cursor)
  const replayed = async (from: Tenant) => {
    const replay = await LiveStream.open(from, OF_SESSION, { headers: { 'last-event-id': '0' } })
    await replay.until(() => shown(replay.items).includes('event late'))
    return replay
  }
  const fromJournal = await replayed(tenant)
  expect(shown(withoutRuns(fromJournal.items)).sort()).toEqual(
    [...ofSession, ...CONTENT('ofUser'), 'event late'].sort(),
  )
  const [first] = all(fromJournal.items)
  const resumed = await LiveStream.open(tenant, `${OF_SESSION}&after=${first}`)
  await resumed.until(() => shown(resumed.items).includes('event late'))
  expect(all(resumed.items)).toEqual(all(fromJournal.items).slice(1))
  await Promise.all([stream.close(), fromJournal.close(), resumed.close()])

  // Afterwards only ClickHouse has it.
  await (await Padding.of(service.api)).push(service.api)
  const firstSegment = join(service.dataDir, 'journal', '0000000000000001.segment')
  await eventually(() => !existsSync(firstSegment))
  await service.stop()
  const again = await startTestService({ ...ENV, ...dataOf(service) })
  const fromHistory = await replayed({ ...tenant, url: again.url })
  expect(all(fromHistory.items)).toEqual(all(fromJournal.items))
  await fromHistory.close()
})

test('a run that gets its session later matches from then on', async () => {
  const service = await startTestService()
  const tenant = await newTenant(service)
  const agent = await newReporter(tenant.api)
  const sql = database(service)
  const runId = await agent.start()
  const stream = await LiveStream.open(tenant, OF_SESSION)
  await agent.events(runId, [{ type: 'before' }])
  const mark = await agent.start({ session_id: SESSION })
  await agent.events(mark, [{ type: 'mark' }])
  await stream.until(() => shown(stream.items).includes('event mark'))
  await sql`update runs set session_id = ${SESSION} where run_id = ${runId}`
  // Changes its record.
  await tenant.api('PATCH', `/api/v1/runs/${runId}`, { tags: ['changed'] })
  await stream.until(() => stream.items.some(({ run }) => run?.run_id === runId))
  await agent.events(runId, [{ type: 'after' }])
  await stream.until(() => shown(stream.items).includes('event after'))
  expect(shown(withoutRuns(stream.items))).toEqual(['event mark', 'event after'])
  await stream.close()
})

test('nothing is missed while runs cannot be looked up, and other feeds do not wait', async () => {
  const service = await startTestService({ LOG_LEVEL: 'silent' })
  const tenant = await newTenant(service)
  const agent = await newReporter(tenant.api)
  const sql = database(service)
  const [runId, none] = [await agent.start({ session_id: SESSION }), await agent.start()]
  await agent.events(runId, [{ type: 'first' }])
  const [live, plain] = [await LiveStream.open(tenant, OF_SESSION), await LiveStream.open(tenant, '/api/v1/stream')]
  await eventually(async () => (await tenant.api('GET', '/readyz')).data.consumers.outbox.lag === 0)
  await sql`alter table runs rename to runs_elsewhere`
  await agent.events(runId, [{ type: 'second' }])
  await agent.events(none, [{ type: 'of no session' }])
  const replay = await LiveStream.open(tenant, `${OF_SESSION}&after=0&kind=event`)
  await plain.until(() => shown(plain.items).includes('event of no session'))
  expect([withoutRuns(live.items), replay.items]).toEqual([[], []])
  await sql`alter table runs_elsewhere rename to runs`
  await agent.events(runId, [{ type: 'third' }])
  await live.until(() => shown(live.items).includes('event third'))
  await replay.until(() => shown(replay.items).includes('event third'))
  expect(shown(withoutRuns(live.items))).toEqual(['event second', 'event third'])
  expect(shown(replay.items)).toEqual(['event first', 'event second', 'event third'])
  expect([live.ended, replay.ended]).toEqual([undefined, undefined])
  await Promise.all([live.close(), plain.close(), replay.close()])
})
