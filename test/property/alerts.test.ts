import { expect, test } from 'bun:test'
import type { Api } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { newReporter, type Reporter } from '../support/feeds.ts'
import { type Random, seededRandom } from '../support/random.ts'
import { allInSql, dataOf, startTestService } from '../support/service.ts'

/** The transitions of a test are those that the live evaluation gave, whatever was reported when, and whatever stopped. */

const SECOND_MS = 10
const EVERY_MS = 60 * SECOND_MS
const ALERTS = 5
const STEPS = 16

const QUERIES = [
  {
    query:
      "select payload.kind::String as kind, count() as n from events where type = 'note' and received_at > {from:DateTime64(3)} group by kind",
    column: 'n',
    by: ['kind'],
  },
  {
    query:
      'select status, count() as n from runs where created_at > now64(3) - interval 1500 millisecond group by status',
    column: 'n',
    by: ['status'],
  },
  {
    query: "select sum(toInt64(payload.n)) as n from events where received_at > {from:DateTime64(3)} and type = 'note'",
    column: 'n',
    by: [],
  },
  {
    query: "select name as kind, countIf(status = 'running') as n from tasks group by kind having n > 0",
    column: 'n',
    by: ['kind'],
  },
  // Fails while some runs are as they are.
  { query: "select throwIf(countIf(status = 'failed') % 3 = 2) + count() as n from runs", column: 'n', by: [] },
]

test('live transitions are those of a test, also over restarts and from the middle', async () => {
  const random = seededRandom('alerts')
  let now = Math.floor(Date.now() / EVERY_MS) * EVERY_MS
  const options = { alertSecondMs: SECOND_MS, clock: { now: () => now } }
  let service = await startTestService({}, options)
  const alerts: string[] = []
  for (let n = 0; n < ALERTS; n++)
    alerts.push((await service.api('POST', '/api/v1/alerts', definition(random, n))).data.alert_id)
  // After the tick at which they were created, which is not evaluated.
  const from = new Date(now + 1).toISOString()
  let reporter = await newReporter(service.api)
  const runs: string[] = []
  const middles: string[] = []
  for (let step = 0; step < STEPS; step++) {
    await report(reporter, random, runs)
    now += random.int(10, EVERY_MS)
    if (step === STEPS / 2 - 1) middles.push(new Date(now).toISOString())
    if (step !== STEPS / 2) continue
    await service.stop()
    now += random.int(0, 4 * EVERY_MS)
    service = await startTestService(dataOf(service), options)
    reporter = await newReporter(service.api)
    runs.length = 0
  }
  const lastTick = Math.floor((now - 1) / EVERY_MS) * EVERY_MS
  const { api } = service
  await eventually(async () => {
    const { data: page } = await api('GET', '/api/v1/alerts')
    for (const alert of page.items) expect(Date.parse(alert.evaluated_at)).toBe(lastTick)
  })
  await allInSql(api)
  const to = new Date(lastTick).toISOString()
  now += EVERY_MS
  let transitions = 0
  for (const id of alerts) {
    const live = await liveTransitions(api, id, to)
    transitions += live.length
    expect(await tested(api, id, from, to)).toEqual(live)
    for (const middle of middles)
      expect(await tested(api, id, middle, to)).toEqual(live.filter(({ at }) => at >= middle))
  }
  expect(transitions).toBeGreaterThan(0)
})

interface Shown {
  readonly series: string
  readonly at: string
}

async function liveTransitions(api: Api, id: string, to: string): Promise<Shown[]> {
  const query =
    'select series, previous_state, state, value, at from alert_states where alert_id = {id:UUID} order by seq'
  const { data } = await api('POST', '/api/v1/query', { query, params: { id } })
  return data.rows.filter(({ at }: Shown) => at <= to)
}

async function tested(api: Api, id: string, from: string, to: string): Promise<Shown[]> {
  const { data } = await api('POST', `/api/v1/alerts/${id}/test`, { from, to })
  expect(data.complete).toBe(true)
  return data.transitions.map(({ series, from: previous_state, to: state, value, at }: Record<string, unknown>) => ({
    ...{ series: JSON.stringify(series), previous_state, state, value, at },
  }))
}

function definition(random: Random, n: number): object {
  const { query, column, by } = QUERIES[n % QUERIES.length]
  const value = random.int(1, 4)
  return {
    ...{ name: `alert ${n}`, query, by, every: '1m', window: random.pick(['1m', '150s']) },
    condition: random.bool(0.2) ? 'any_row' : { column, op: random.pick(['>', '>=', '<', '=', '!=']), value },
    ...(random.bool() && { for: random.pick(['30s', '1m', '2m']) }),
    ...(random.bool() && { keep_firing_for: random.pick(['1m', '3m']) }),
    ...(random.bool() && { renotify: random.pick(['1m', '2m']) }),
    no_data: random.pick(['ok', 'last', 'alert', 'zero']),
    on_error: random.pick(['last', 'alert']),
  }
}

async function report(reporter: Reporter, random: Random, runs: string[]): Promise<void> {
  const kinds = ['a', 'b', 'c']
  const run = runs.length === 0 || random.bool(0.3) ? await reporter.start() : random.pick(runs)
  if (!runs.includes(run)) runs.push(run)
  const choice = random.int(0, 3)
  if (choice === 0)
    await reporter.task(run, { name: random.pick(kinds), status: random.pick(['running', 'completed']) })
  if (choice === 1) {
    await reporter.end(run, random.bool() ? 'broken' : undefined)
    runs.splice(runs.indexOf(run), 1)
  }
  if (choice > 1) {
    const count = random.int(1, 3)
    const events = Array.from({ length: count }, () => ({
      type: 'note',
      payload: { kind: random.pick(kinds), n: random.int(0, 3) },
    }))
    await reporter.events(run, events)
  }
}
