import { beforeAll, describe, expect, test } from 'bun:test'
import { newReporter, type Reporter } from '../support/feeds.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { chromium, type DashboardPage, openDashboard } from './dashboard-page.ts'

/** The dashboard when its key has spent a budget, and when the service is away: it says so, and goes on by itself. */

describe.skipIf(chromium === null)('the dashboard at limits (needs a Chromium)', () => {
  let service: TestService
  let page: DashboardPage
  let reporter: Reporter
  let runId: string

  beforeAll(async () => {
    service = await startTestService({ RATE_LIMIT_READS_PER_MINUTE: '60', RATE_LIMIT_QUERIES_PER_MINUTE: '20' })
    reporter = await newReporter(service.api)
    runId = await reporter.start()
    await reporter.events(runId, [{ type: 'step' }])
    page = await openDashboard(service.url)
    await page.signIn(service.workspaceKey)
    await page.shows('.waiting-now', 'Nothing waits')
    await page.until(`document.querySelector('.tile')`)
  })

  test('a run opens by itself once there is a budget of reads again', async () => {
    await exhaust(() => service.api('GET', '/api/v1/agents'))
    await page.go(`#/runs/${runId}`)
    await page.shows('.trouble', 'Too many requests')
    await page.shows('.event-row', 'step')
    await page.until(`document.querySelector('.trouble') === null`)
  })

  test('the overview says that the budget of queries is spent, and shows its figures once there is one again', async () => {
    await exhaust(() => service.api('POST', '/api/v1/query', { query: 'SELECT 1' }))
    await page.go('#/overview?range=6h')
    await page.shows('.trouble', 'Too many queries')
    await page.until(`document.querySelector('.tile') && document.querySelector('.trouble') === null`)
  })

  test('without the service the page says so; when it is back, it goes on where it was, and a tail has lost nothing', async () => {
    const tail = await page.newTab(`${service.url}/#/live?type=tick.`)
    await tail.shows('.tail-state', 'Live ·')
    await tick(1)
    await tail.shows('.tail-row', 'tick.1')
    await page.send('Page.bringToFront')
    await restart(async () => {
      await tail.shows('.tail-state', 'Reconnecting')
      await page.shows('.trouble', 'The service does not respond')
      // A view that is opened meanwhile waits.
      await page.go(`#/runs/${runId}`)
      await page.until(`document.querySelector('.skeleton')`)
    })
    // Reported before the tail is connected again, or after: it does not matter.
    for (const n of [2, 3, 4]) await tick(n)
    await page.shows('.event-row', 'tick.4')
    await page.until(`document.querySelector('.trouble') === null`)
    await tail.shows('.tail-row', 'tick.4')
    const types = `[...document.querySelectorAll('.tail-row .event-type')].map((each) => each.textContent)`
    expect(await tail.evaluate<string[]>(types)).toEqual(['tick.1', 'tick.2', 'tick.3', 'tick.4'])
  })

  const tick = (n: number) => reporter.events(runId, [{ type: `tick.${n}` }])

  async function exhaust(call: () => Promise<{ readonly status: number }>): Promise<void> {
    for (let status = 200; status !== 429; ) ({ status } = await call())
  }

  async function restart(whileStopped: () => Promise<void>): Promise<void> {
    const { url, workspaceKey, dataDir, databaseUrl, clickhouseUrl } = service
    await service.stop()
    await whileStopped()
    service = await startTestService({
      PORT: new URL(url).port,
      DATA_DIR: dataDir,
      DATABASE_URL: databaseUrl,
      CLICKHOUSE_URL: clickhouseUrl,
      BOOTSTRAP_WORKSPACE_KEY: workspaceKey,
    })
  }
})
