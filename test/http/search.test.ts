import { beforeAll, describe, expect, test } from 'bun:test'
import type { ListRuns } from '../../src/activity/runs/schema.ts'
import { Indexing } from '../../src/activity/runs/search/indexing.ts'
import { RunSearch } from '../../src/activity/runs/search/run-search.ts'
import { definedOf } from '../../src/base/defined.ts'
import { SharedSlice } from '../../src/base/http/shared-slice.ts'
import { ColumnarError } from '../../src/stores/clickhouse/client.ts'
import { TENANT_WORKLOAD } from '../../src/stores/clickhouse/protocol.ts'
import type { Caller } from '../../src/tenants/keys/schema.ts'
import { pagesOf } from '../support/api.ts'
import { batchOf } from '../support/events.ts'
import { eventually } from '../support/eventually.ts'
import { verdict } from './auth-app.ts'
import { type RunsApp, runsApp } from './runs-app.ts'

/** Of a request that nobody ends. */
const SIGNAL = new AbortController().signal

let app: RunsApp
beforeAll(async () => {
  app = await runsApp()
})

interface Found {
  readonly run_id: string
  readonly match: {
    readonly field: string
    readonly snippet: readonly { readonly text: string; readonly match?: true }[]
    readonly event_id?: string
    readonly event_seq?: number
    readonly event_type?: string
    readonly task_id?: string
  } | null
}
type Filters = Readonly<Record<string, string>>

const path = (q: string, filters: Filters = {}) => `runs?${new URLSearchParams({ q, ...filters })}`
const search = async (q: string, filters?: Filters, key?: string): Promise<Found[]> =>
  (await app.read(path(q, filters), key)).data.items
const idsOf = async (...given: Parameters<typeof search>) => (await search(...given)).map(({ run_id }) => run_id)
/** What was accepted is usually found at once, but guaranteed to be only soon. */
const found = (...given: Parameters<typeof search>) =>
  eventually(async () => {
    const runs = await search(...given)
    return runs.length > 0 && runs
  })
const shown = ({ match }: Found) =>
  match?.snippet.map((piece) => (piece.match ? `[${piece.text}]` : piece.text)).join('')
const report = (run: string, events: readonly object[]) => {
  const { workspaceId } = app.workspace
  const ref = { runId: run, workspaceId, agentId: app.agent.agentId, runtimeType: 'external' as const }
  return app.journal.appendEvents(batchOf(ref, events))
}

test('each field of a run, its tasks and its events is searched, and the answer says where', async () => {
  const run = await app.start({
    external_run_id: 'order-4711',
    session_id: 'chat:ab12cd',
    external_user_id: 'eve@example.com',
    tags: ['nightly', 'Kraków'],
    metadata: { region: 'patagonia' },
    input: { message: 'Please refund\nthe “broken” Lamp' },
  })
  const task = crypto.randomUUID()
  const input = { query: 'mahogany' }
  await app.ingest('tasks', { run_id: run, task: { id: task, name: 'check the warehouse', status: 'running', input } })
  await app.ingest('tasks', {
    run_id: run,
    task: { id: task, name: 'check the warehouse', status: 'failed', error_message: 'avalanche' },
  })
  await report(run, [
    { type: 'note', payload: { text: 'nothing' } },
    { type: 'llm.call', task_id: task, payload: { text: 'It was\nflabbergasted by C:\\new "things"' } },
  ])
  await app.ingest('run/fail', {
    run_id: run,
    error_message: 'Timeout of the gizmo',
    error_detail: { at: 'carburettor' },
  })
  const [event] = (await app.read(`runs/${run}/events`)).data.items
  const places: readonly (readonly [q: string, field: string, snippet: string])[] = [
    [run.slice(0, 13).toUpperCase(), 'run_id', `[${run.slice(0, 13)}]${run.slice(13)}`],
    [run.slice(-8), 'run_id', `${run.slice(0, -8)}[${run.slice(-8)}]`],
    [run, 'run_id', `[${run}]`],
    ['ORDER-47', 'external_run_id', '[order-47]11'],
    ['4711', 'external_run_id', 'order-[4711]'],
    ['chat:ab', 'session_id', '[chat:ab]12cd'],
    ['eve', 'external_user_id', '[eve]@example.com'],
    ['eve@example', 'external_user_id', '[eve@example].com'],
    ['KRAKÓW', 'tags', 'nightly [Kraków]'],
    ['patagonia', 'metadata', '{"region":"[patagonia]"}'],
    ['broken lamp', 'input', '{"message":"Please refund the “[broken]” [Lamp]"}'],
    ['"refund the"', 'input', '{"message":"Please [refund the] “broken” Lamp"}'],
    ['gizmo', 'error_message', 'Timeout of the [gizmo]'],
    ['carburettor', 'error_detail', '{"at":"[carburettor]"}'],
    ['warehouse', 'task.name', 'check the [warehouse]'],
    ['mahogany', 'task.input', '{"query":"[mahogany]"}'],
    ['avalanche', 'task.error_message', '[avalanche]'],
    [task, 'task.id', `[${task}]`],
    [event.id.slice(0, 20).toLowerCase(), 'event.id', `[${event.id.slice(0, 20)}]${event.id.slice(20)}`],
    ['flabbergasted', 'event.payload', '{"text":"It was [flabbergasted] by C:\\new "things""}'],
    ['new flabbergasted', 'event.payload', '{"text":"It was [flabbergasted] by C:\\[new] "things""}'],
    ['C:\\new', 'event.payload', '{"text":"It was flabbergasted by [C:\\new] "things""}'],
    // Words of two fields of the run itself.
    ['patagonia gizmo', 'error_message', 'Timeout of the [gizmo]'],
  ]
  await found('flabbergasted')
  for (const [q, field, snippet] of places) {
    const runs = await found(q).catch((error) => Promise.reject(new Error(`not found: ${q}`, { cause: error })))
    expect([q, runs.map(({ run_id }) => run_id)]).toEqual([q, [run]])
    expect([q, runs[0]!.match?.field, shown(runs[0]!)]).toEqual([q, field, snippet])
  }
  expect((await search('flabbergasted'))[0]!.match).toMatchObject({
    event_id: expect.any(String),
    event_seq: expect.any(Number),
    event_type: 'llm.call',
    task_id: task,
  })
  expect((await search('avalanche'))[0]!.match).toMatchObject({ task_id: task })
  // The event has one word, the run the other; words are whole; quotation marks and marks inside are literal.
  for (const q of [
    'flabbergasted gizmo',
    'flabber',
    '"the refund"',
    'flabbergasted*',
    '%gizmo%',
    'giz_o',
    'order-4712',
  ])
    expect([q, await idsOf(q)]).toEqual([q, []])
  expect((await app.read(path('gizmo'))).data.searched).toEqual({ runs_since: null })
  expect((await app.read(`runs/${run}`)).data.match).toBeUndefined()
})

test('of a long text, the part around the first word is shown, and of several texts the one with the most words', async () => {
  const filler = 'lorem ipsum bark dolor sit amet, '.repeat(2_000)
  const run = await app.start({
    input: { text: `${filler}Obsidian lantern ${filler}` },
    metadata: { note: 'obsidian' },
  })
  await app.ingest('run/complete', { run_id: run, output: { text: `${filler}quokka` } })
  await found('quokka')
  const places: readonly (readonly [q: string, field: string, marked: readonly string[]])[] = [
    ['lantern', 'input', ['lantern']],
    ['obsidian lantern', 'input', ['Obsidian', 'lantern']],
    ['quokka', 'output', ['quokka']],
    // No part has both: a long text is cut around the first word.
    ['lantern quokka', 'input', ['lantern']],
  ]
  for (const [q, field, marked] of places) {
    const { match } = (await search(q))[0]!
    const texts = match?.snippet.flatMap((piece) => (piece.match ? [piece.text] : []))
    expect([q, match?.field, texts]).toEqual([q, field, [...marked]])
    expect(shown({ run_id: run, match })!.length).toBeLessThan(250)
  }
})

test('texts without spaces, and texts that could be SQL, are found as they are written', async () => {
  const run = await app.start({ input: { 話: '返金をお願いします', sql: "'); drop table events; -- {words:String}" } })
  await found('返金')
  for (const q of ['お願い', "'); drop", '"drop table events; --"', '{words:String}'])
    expect(await idsOf(q)).toEqual([run])
  expect(await idsOf("' or 1=1 --")).toEqual([])
})

test('a search stays within the workspace, and an agent key within its agent', async () => {
  const run = await app.start({ input: { text: 'clandestine' } })
  await report(run, [{ type: 'note', payload: { text: 'confidential' } }])
  await found('confidential')
  const outsider = await app.newWorkspace()
  const sibling = await app.newAgent(app.workspace.workspaceId)
  for (const q of ['clandestine', 'confidential', run]) {
    expect(await idsOf(q, {}, app.agent.key)).toEqual([run])
    expect(await idsOf(q, {}, sibling.key)).toEqual([])
    expect(await idsOf(q, {}, outsider.key)).toEqual([])
    expect(await idsOf(q, { agent_id: app.agent.agentId }, outsider.key)).toEqual([])
  }
  const theirs = await app.read(path('clandestine', { agent_id: app.agent.agentId }), sibling.key)
  expect(verdict(theirs)).toBe('403 FORBIDDEN')
})

test('filters are combined with the search', async () => {
  const agent = await app.newAgent(app.workspace.workspaceId)
  const from = new Date(app.clock.now()).toISOString()
  const parent = await app.start()
  const fields = { external_run_id: 'x & y', parent_run_id: parent, session_id: 's 1', external_user_id: "o'neill" }
  const run = await app.start({ ...fields, trigger_type: 'manual', tags: ['a', 'b'], input: { t: 'zephyr' } }, agent)
  app.clock.aheadMs += 10
  const to = new Date(app.clock.now()).toISOString()
  const decoy = await app.start({ input: { t: 'zephyr' } })
  await app.ingest('run/complete', { run_id: decoy })
  await found('zephyr', { status: 'completed' })
  const filters = {
    ...fields,
    status: 'running',
    agent_id: agent.agentId.toUpperCase(),
    trigger_type: 'manual',
    tag: 'b',
    to,
  }
  // A window of one run: the others are found by ClickHouse, with its own columns.
  const searches = [...searchesWith({ newest: 1 }), ...searchesWith({})]
  for (const ids of searches) {
    for (const [name, value] of Object.entries(filters)) {
      const given = { [name]: name === 'status' ? [value] : value } as Partial<ListRuns>
      expect([name, await ids({ q: 'zephyr', ...given })]).toEqual([name, [run]])
    }
    expect(await ids({ q: 'zephyr', from })).toEqual([decoy, run])
    expect(await ids({ q: 'zephyr', from: to })).toEqual([decoy])
  }
  expect(await idsOf('zephyr', { ...filters, from })).toEqual([run])
})

function searchesWith(sizes: { readonly newest?: number; readonly newestIfSlow?: number }) {
  const search = searchOf(sizes)
  return [async (query: ListRuns) => (await search.list(caller(), query, SIGNAL)).items.map(({ run_id }) => run_id)]
}

function searchOf(sizes: object, query = app.client.query): RunSearch {
  const { runs, partitions } = app
  return new RunSearch({ runs, partitions, columnar: { query }, slice: new SharedSlice(), ...sizes })
}

function caller(workspaceId = app.workspace.workspaceId): Caller {
  return { keyId: '', type: 'workspace', workspaceId, partition: 0, agentId: null }
}

test('runs that leave the list while it is searched do not end it', async () => {
  const made: string[] = []
  for (let n = 0; n < 4; n++) made.unshift(await app.start({ input: { t: 'wombat' } }))
  await eventually(async () => (await idsOf('wombat')).length === made.length)
  const [newest] = made as [string]
  const { runs } = app
  const ending: Pick<typeof runs, 'list' | 'newest' | 'listed' | 'cursorAt'> = {
    list: (...given) => runs.list(...given),
    newest: (...given) => runs.newest(...given),
    cursorAt: (position) => runs.cursorAt(position),
    async listed(...given) {
      await runs.cancel(caller(), newest, {})
      return runs.listed(...given)
    },
  }
  const query = { q: 'wombat', status: ['running' as const], limit: 2 }
  const search = searchOf({ runs: ending })
  const pages = await pagesOf<{ readonly run_id: string }>(async (after) => {
    const cursor = after === '' ? {} : { cursor: decodeURIComponent(after.slice('&cursor='.length)) }
    return { data: await search.list(caller(), { ...query, ...cursor }, SIGNAL) }
  })
  expect(pages.flat().map(({ run_id }) => run_id)).toEqual(made.slice(1))
})

test("a session's id is found in either case by every part of a search", async () => {
  const session = crypto.randomUUID()
  const run = await app.start({ session_id: session, input: { t: 'ptarmigan' } })
  await app.start({ input: { t: 'ptarmigan' } })
  await found('ptarmigan', { session_id: session })
  for (const ids of [...searchesWith({ newest: 1 }), ...searchesWith({})])
    expect(await ids({ q: 'ptarmigan', session_id: session.toUpperCase() })).toEqual([run])
})

test('a workspace with a search gets another only from half of what is free, so that few leave room for others', async () => {
  const never = new Promise<never>(() => {})
  const search = searchOf({ runs: { newest: () => never } })
  const held: number[] = []
  for (let workspace = 0; workspace < 7; workspace++) {
    const id = crypto.randomUUID()
    const asked = [1, 2].map(() => search.list(caller(id), { q: 'quagga' }, SIGNAL).catch((error) => error.code))
    const settled = await Promise.all(asked.map((each) => Promise.race([each, Promise.resolve().then(() => 'runs')])))
    held.push(settled.filter((each) => each !== 'RATE_LIMITED').length)
  }
  expect(held).toEqual([2, 2, 1, 1, 1, 1, 0])
})

test('searches run as queries of their workspace, which has two at once, and end with their requests', async () => {
  await app.start({ input: { t: 'quagga' } })
  const asked: Parameters<typeof app.client.query>[1][] = []
  const search = searchOf({}, (_, options) => {
    asked.push(options)
    const signal = options!.signal!
    return new Promise((_resolve, reject) => {
      if (signal.aborted) reject(signal.reason)
      signal.addEventListener('abort', () => reject(signal.reason))
    })
  })
  const requests = new AbortController()
  const running = [1, 2].map(() => search.list(caller(), { q: 'quagga' }, requests.signal).catch((error) => error.name))
  expect(await search.list(caller(), { q: 'quagga' }, SIGNAL).catch((error) => error.code)).toBe('RATE_LIMITED')
  const { workspaceId } = await app.newWorkspace()
  expect((await search.list(caller(workspaceId), { q: 'quagga' }, SIGNAL)).items).toEqual([])
  await eventually(async () => asked.length === 2)
  for (const options of asked) {
    expect(options?.quotaKey).toBe(app.workspace.workspaceId)
    expect(options?.settings).toMatchObject({ workload: TENANT_WORKLOAD, max_memory_usage: 2 ** 30 })
  }
  requests.abort()
  expect(await Promise.all(running)).toEqual(['AbortError', 'AbortError'])
  const again = search.list(caller(), { q: 'quagga' }, AbortSignal.timeout(50))
  expect(await again.catch((error) => error.name)).toBe('TimeoutError')
})

describe('pages', () => {
  const wanted: string[] = []
  beforeAll(async () => {
    for (let index = 0; index < 14; index++) {
      app.clock.aheadMs += index % 3 === 0 ? 1 : 0
      const run = await app.start({ input: { index } })
      if (index % 2 === 0) await report(run, [{ type: 'note', payload: { text: 'perennial' } }])
      if (index % 2 === 0) wanted.push(run)
    }
    await eventually(async () => (await idsOf('perennial')).length === wanted.length)
  })

  test('have every match once, newest first, wherever a search has to look', async () => {
    const pages = await pagesOf<Found & { created_at: string }>((cursor) =>
      app.read(`${path('perennial', { limit: '3' })}${cursor}`),
    )
    const keys = pages.flat().map((run) => `${run.created_at} ${run.run_id}`)
    expect(keys).toEqual(keys.toSorted().reverse())
    expect(pages.map(({ length }) => length)).toEqual([3, 3, 1])
    for (const newest of [1, 2, 5]) {
      const search = searchOf({ newest })
      const windows = await pagesOf<Found>(async (cursor) => ({
        data: await search.list(
          caller(),
          definedOf({ q: 'perennial', limit: 2, cursor: new URLSearchParams(cursor).get('cursor') ?? undefined }),
          SIGNAL,
        ),
      }))
      expect(windows.flat().map(({ run_id }) => run_id)).toEqual(pages.flat().map(({ run_id }) => run_id))
    }
  })

  test('say how far they got when time runs out, and the next continues there', async () => {
    const query: typeof app.client.query = (sql, options) => {
      if (sql.includes('order by created_at desc')) throw new ColumnarError(159, 'TIMEOUT_EXCEEDED', 'Timeout exceeded')
      return app.client.query(sql, options)
    }
    const search = searchOf({ newest: 2, newestIfSlow: 3 }, query)
    const seen: string[] = []
    let cursor: string | undefined
    let stops = 0
    do {
      const page = await search.list(caller(), definedOf({ q: 'perennial', cursor }), SIGNAL)
      seen.push(...page.items.map(({ run_id }) => run_id))
      if (page.searched?.runs_since != null) stops++
      expect(page.searched?.runs_since === null).toBe(page.next_cursor === null)
      cursor = page.next_cursor ?? undefined
    } while (cursor !== undefined)
    expect(seen).toEqual(await idsOf('perennial'))
    expect(stops).toBeGreaterThan(2)
  })
})

test('an invalid q is refused with its name', async () => {
  const words = Array.from({ length: 17 }, (_, index) => `w${index}`).join(' ')
  const problems: readonly (readonly [q: string, message: string])[] = [
    ['', 'query.q: expected at least 1 character'],
    ['  ""', 'query.q: expected at least one word'],
    ['*** "%"', 'query.q: expected at least one word'],
    [words, 'query.q: expected at most 16 words and phrases'],
    ['x'.repeat(501), 'query.q: expected at most 500 characters'],
    ['a\0b', 'query.q: expected text without the character U+0000'],
  ]
  for (const [q, message] of problems) {
    const { error } = await app.read(path(q))
    expect([q, error?.code]).toEqual([q, 'VALIDATION_ERROR'])
    expect(error?.message).toStartWith(message)
  }
})

test('an index that is built later changes no answer, and is built once for each part', async () => {
  const run = await app.start()
  await report(run, [{ type: 'note', payload: { text: 'line one\nPHILATELY “stamps”' } }])
  await found('philately')
  const answers = async () => {
    const both = await Promise.all(['philately', 'stamps "line one philately"'].map((q) => idsOf(q)))
    return [...both, await idsOf('philatel')]
  }
  const before = await answers()
  expect(before).toEqual([[run], [run], []])
  // Of yesterday, so that the day is over.
  await app.client.command(
    "insert into events (* except (received_at), received_at) select * except (received_at), now64(3) - interval 1 day from events settings exclude_materialize_skip_indexes_on_insert = 'said'",
  )
  const indexing = new Indexing(app.client)
  const next = () => indexing.indexNext(Date.now(), new AbortController().signal)
  expect(await next()).toMatchObject({ table: 'events' })
  await eventually(async () => (await mutations()) === 0)
  const plan = await app.client.queryText(
    "explain indexes = 1 select count() from events where hasAllTokens(search_text, 'nowhere') and toDate(received_at) < today()",
    'TabSeparated',
  )
  expect(plan).toMatch(/Name: said[\s\S]*Parts: 0\/1/)
  expect(await next()).toBeNull()
  expect(await answers()).toEqual(before)
})

async function mutations(): Promise<number> {
  const sql = 'select count() as n from system.mutations where database = {database:String} and not is_done'
  const [{ n }] = await app.client.query<{ n: number }>(sql, { params: { database: app.client.database } })
  return n
}
