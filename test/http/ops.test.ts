import { expect, test } from 'bun:test'
import packageJson from '../../package.json' with { type: 'json' }
import { findChromium, launch } from '../browser/chromium.ts'
import { newAgent } from '../support/api.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'
import { eventually } from '../support/eventually.ts'
import { freshDatabase } from '../support/postgres.ts'
import { allInSql, startTestService } from '../support/service.ts'
import { postgresProxy } from '../support/tcp-proxy.ts'

const database = await freshDatabase()
const proxy = await postgresProxy(database.url)
const { api, url, workspaceKey } = await startTestService({
  DATABASE_URL: proxy.url,
  RATE_LIMIT_READS_PER_MINUTE: '1234',
  RATE_LIMIT_QUERIES_PER_MINUTE: '300',
})
const open = (path: string) => api('GET', path, undefined, { key: null })

test('healthz needs no key and returns the version', async () => {
  const { status, data } = await open('/healthz')
  expect(status).toBe(200)
  expect(data).toMatchObject({ status: 'ok', version: packageJson.version })
})

test('readyz lists each dependency and the lag of each consumer', async () => {
  // On a busy machine a check may take too long, which is reported.
  await eventually(async () => {
    const { status, data } = await open('/readyz')
    expect(status).toBe(200)
    expect(data).toMatchObject({
      status: 'ready',
      dependencies: { postgres: { ok: true, problem: null }, clickhouse: { ok: true, problem: null } },
      consumers: { clickhouse: { lag: 0 }, run_statistics: { lag: 0 }, outbox: { lag: 0 } },
    })
  })
})

test('readyz is 503 while Postgres is unreachable, names it, and recovers', async () => {
  await proxy.cut()
  const { status, error, headers } = await open('/readyz')
  expect(status).toBe(503)
  expect(error?.code).toBe('UNAVAILABLE')
  expect(error?.message).toMatch(/^postgres: /)
  expect(headers.get('retry-after')).not.toBeNull()
  expect((await open('/healthz')).status).toBe(200)
  await proxy.mend()
  expect((await open('/readyz')).status).toBe(200)
})

test('limits are readable without a key, as configured', async () => {
  const { status, data } = await open('/api/v1/limits')
  expect(status).toBe(200)
  expect(data).toMatchObject({ body_bytes: 10_485_760, events_per_call: 5_000, event_payload_bytes: 524_288 })
  expect(data).toMatchObject({ run_input_bytes: 3_145_728, run_output_bytes: 10_485_760, tags: 20, tag_length: 128 })
  expect(data.rate_limits).toEqual({
    ingest_requests_per_minute: 60_000,
    events_per_second: 100_000,
    invokes_per_minute: 600,
    reads_per_minute: 1_234,
    queries_per_minute: 300,
  })
})

test('metrics count requests and events in the Prometheus text format', async () => {
  const { agentId, agentKey } = await newAgent(api)
  const { data } = await api('POST', '/api/ingest/v1/run/start', { agent_id: agentId }, { key: agentKey })
  const events = [{ type: 'a', id: '1' }, { type: 'b' }, { type: 'a', id: '1' }]
  await api('POST', '/api/ingest/v1/events', { run_id: data.run_id, events }, { key: agentKey })
  const { text, headers } = await open('/metrics')
  expect(headers.get('content-type')).toStartWith('text/plain; version=0.0.4')
  expect(text).toContain('\nevents_accepted_total 2\n')
  expect(text).toContain('\nevents_duplicate_total 1\n')
  expect(text).toContain('\nhttp_requests_total{method="POST",route="/api/ingest/v1/events",status="200"} 1\n')
  expect(text).toMatch(/\njournal_commit_seconds_count [1-9]/)
  expect(text).toMatch(/\npostgres_connections [1-9]/)
  for (const line of text.trimEnd().split('\n')) {
    expect(line).toMatch(/^(# (HELP|TYPE) \w+ .+|\w+(\{(\w+="[^"]*",?)+\})? [\d.e+-]+)$/)
  }
})

test('unknown paths do not add routes to the metrics', async () => {
  const before = (await open('/metrics')).text.split('\n').filter((line) => line.includes('http_requests_total')).length
  for (let i = 0; i < 20; i++) await open(`/no/such/${i}`)
  const after = (await open('/metrics')).text.split('\n').filter((line) => line.includes('http_requests_total')).length
  expect(after - before).toBeLessThanOrEqual(2)
})

test('the API reference page loads nothing from other origins', async () => {
  const page = await open('/docs')
  expect(page.status).toBe(200)
  expect(page.headers.get('content-security-policy')).toStartWith("default-src 'none'")
  expect(page.text).not.toMatch(/https?:\/\//)
  for (const path of page.text.match(/(?<=(src|href)=")\/[^"]+/g) ?? []) expect((await open(path)).status).toBe(200)
})

test('the API reference and what it loads are read as what they are, and in no frame', async () => {
  const page = await open('/docs')
  const assets = page.text.match(/\/docs\/assets\/[^"]+/g) ?? []
  expect(assets.length).toBeGreaterThan(1)
  for (const path of ['/docs', '/docs/json', ...assets]) {
    const { status, headers } = await open(path)
    expect({ status, sniffing: headers.get('x-content-type-options') }).toEqual({ status: 200, sniffing: 'nosniff' })
    expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'.*frame-ancestors 'none'/)
  }
})

const chromium = await findChromium()

test.skipIf(chromium === null)(
  'the API reference page works in a browser without internet access',
  async () => {
    const page = await launch(chromium as string)
    await page.open(`${url}/docs`)
    const shown = `(async () => {
    for (let i = 0; i < 500 && document.querySelectorAll('.operation').length < 20; i++) await new Promise((r) => setTimeout(r, 20))
    return document.querySelectorAll('.operation').length + ' ' + document.querySelector('.title')?.textContent
  })()`
    expect(await page.evaluate<string>(shown)).toMatch(/^\d{2,3} Agent Run Service/)
    const isDark = `getComputedStyle(document.body).backgroundColor === 'rgb(22, 24, 29)'`
    for (const value of ['dark', 'light']) {
      await page.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value }] })
      await eventually(async () => (await page.evaluate<boolean>(isDark)) === (value === 'dark'))
    }
    // Light, then dark: the choice is that of the dashboard.
    await page.evaluate(`document.querySelector('#theme').click(), document.querySelector('#theme').click()`)
    expect(await page.evaluate<unknown>(`[${isDark}, localStorage.theme]`)).toEqual([true, 'dark'])
    // The introduction leads to an operation, and its samples name this service.
    await page.evaluate(`[...document.querySelectorAll('.info a')].find((a) => a.hash === '#/Ingest/startRun').click()`)
    const samples = `document.querySelector('#operations-Ingest-startRun .samples')`
    await eventually(() => page.evaluate<boolean>(`${samples} !== null`))
    const languages = `[...${samples}.querySelectorAll('[aria-pressed]')].map((tab) => tab.textContent)`
    expect(await page.evaluate<string[]>(languages)).toEqual(['curl', 'TypeScript', 'Python'])
    expect(await page.evaluate<string>(`${samples}.querySelector('pre').textContent`)).toContain(`curl ${url}/api/`)
    await page.evaluate(`${samples}.querySelectorAll('[aria-pressed]')[1].click()`)
    await eventually(() => page.evaluate<boolean>(`${samples}.querySelector('pre').textContent.includes('import {')`))
    // A call with the key of the page.
    await page.evaluate(`location.hash = '#/Runs/listRuns'`)
    const form = `document.querySelector('#operations-Runs-listRuns form')`
    await eventually(() => page.evaluate<boolean>(`${form} !== null`))
    await page.evaluate(`((key) => (key.value = '${workspaceKey}', key.dispatchEvent(new Event('input'))))
      (document.querySelector('.docs-head input'))`)
    await page.evaluate(`${form}.querySelector('[name="query limit"]').value = '1', ${form}.requestSubmit()`)
    await eventually(() =>
      page.evaluate<boolean>(`/200.*"next_cursor": null/s.test(${form}.querySelector('output')?.textContent)`),
    )
    expect(page.complaints).toEqual([])
    expect(page.requests.filter((address) => !address.startsWith(url) && !address.startsWith('data:'))).toEqual([])
  },
  30_000,
)

test('readyz names the error with which ClickHouse refuses rows, not what they hold; nothing is left out, and loading goes on', async () => {
  const { client, url: CLICKHOUSE_URL } = await freshColumnarDatabase()
  const own = await startTestService({ CLICKHOUSE_URL })
  const ready = async () => (await own.api('GET', '/readyz', undefined, { key: null })).data
  const { agentId, agentKey: key } = await newAgent(own.api)
  await client.command("alter table events add constraint strict check type != 'secret'")
  const { data } = await own.api('POST', '/api/ingest/v1/run/start', { agent_id: agentId }, { key })
  const body = { run_id: data.run_id, events: [{ type: 'secret' }, { type: 'other' }] }
  await eventually(async () => (await own.api('POST', '/api/ingest/v1/events', body, { key })).status === 200)
  await eventually(async () => (await ready()).loops.sink.problem === 'ClickHouse refuses it (VIOLATED_CONSTRAINT)')
  expect((await ready()).consumers.clickhouse.set_aside).toBe(0)
  await client.command('alter table events drop constraint strict')
  await allInSql(own.api)
  const query = 'select type from events order by seq'
  expect((await own.api('POST', '/api/v1/query', { query })).data.rows).toEqual([{ type: 'secret' }, { type: 'other' }])
  await own.stop()
})
