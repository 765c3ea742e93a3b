import { beforeAll, describe, expect, test } from 'bun:test'
import { newReporter, type Reporter } from '../support/feeds.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { chromium, type DashboardPage, openDashboard } from './dashboard-page.ts'

/** Charts of queries, boards of them, and the live view, as people use them. */

const WITHIN = 'created_at >= {from:DateTime64(3)} AND created_at < {to:DateTime64(3)}'
const BY_STATUS = `SELECT toStartOfInterval(created_at, toIntervalSecond({step:UInt32})) AS time, status, count() AS runs
FROM runs WHERE ${WITHIN} GROUP BY time, status ORDER BY time`

describe.skipIf(chromium === null)('charts, boards and the live view (need a Chromium)', () => {
  let service: TestService
  let page: DashboardPage
  let reporter: Reporter
  let runId: string

  beforeAll(async () => {
    service = await startTestService()
    reporter = await newReporter(service.api)
    runId = await reporter.start()
    await reporter.end(runId)
    await reporter.start()
    page = await openDashboard(service.url)
    await page.signIn(service.workspaceKey)
    await page.until(`document.querySelector('.waiting-now')`)
  })

  const query = (name: string) =>
    page.evaluate<string | null>(`new URLSearchParams(location.hash.split('?')[1]).get('${name}')`)
  const keys = (selector = '.result') =>
    page.evaluate<string[]>(
      `[...document.querySelectorAll('${selector} .chart-key')].map((key) => key.firstChild.textContent.trim())`,
    )
  const save = async (name: string, text: string, chart: object | null = null): Promise<string> =>
    (await service.api('POST', '/api/v1/queries', { name, query: text, chart })).data.query_id

  test('ids in a result lead to what they name', async () => {
    await page.go(
      `#/sql?${new URLSearchParams({ q: 'SELECT run_id, agent_id, run_id AS other FROM runs ORDER BY created_at LIMIT 1' })}`,
    )
    await page.until(`document.querySelectorAll('.result-rows a').length === 2`)
    const links = `[...document.querySelectorAll('.result-rows a')].map((link) => link.hash)`
    const [run, agent] = await page.evaluate<string[]>(links)
    expect(run).toBe(`#/runs/${runId}`)
    expect(agent).toStartWith('#/agents/')
  })

  test('a chart is chosen by the types of the columns, or by the user: kind, axes, unit; the address says so', async () => {
    const text = 'SELECT toDateTime(number * 60) AS at, number AS runs, number * 900 AS p95_ms FROM numbers(5)'
    await page.go('#/keys')
    await page.until(`document.querySelector('.keys')`)
    await page.go(`#/sql?${new URLSearchParams({ q: text })}`)
    await page.click('.result button', 'Chart')
    await page.until(`document.querySelector('.result .u-over')`)
    // Milliseconds have an axis of their own.
    expect(await page.text('.result .chart-legend')).toContain('p95_ms (right)')
    expect(await page.count('.result .u-axis')).toBe(3)
    await page.choose('select[aria-label="Kind of chart"]', 'Stacked area')
    await page.until(`document.querySelectorAll('.result .u-axis').length === 2`)
    await page.click('.chart-controls summary')
    await page.choose('.menu-body select:not(:first-child)', 'Hidden')
    await page.until(`location.hash.includes('chart=')`)
    expect(JSON.parse((await query('chart')) ?? '')).toMatchObject({ kind: 'area' })
    const hash = await page.evaluate<string>('location.hash')
    await page.evaluate('(window.isOld = true, location.reload())')
    await page.until(`!window.isOld && document.querySelector('.result .chart-key')`)
    expect(await page.evaluate<string>('location.hash')).toBe(hash)
    await page.choose('select[aria-label="Kind of chart"]', 'Number')
    await page.until(`document.querySelector('.figures dd')`)
    await page.click('button', 'Reset')
    await page.until(`document.querySelector('.result .u-over')`)
    expect(await query('chart')).toBeNull()
  })

  test('a query that is saved keeps its chart, and is pinned to a new board, which runs it in its own range', async () => {
    const chart = JSON.stringify({ kind: 'bar' })
    await page.go('#/keys')
    await page.until(`document.querySelector('.keys')`)
    await page.go(`#/sql?${new URLSearchParams({ q: BY_STATUS, as: 'chart', chart })}`)
    await page.shows('.result .chart-key', 'completed')
    await page.click('.view-tools button', 'Save')
    await page.fill('dialog input', 'runs by status')
    await page.click('dialog button[type=submit]')
    await page.click('.view-tools button', 'Pin to a board')
    await page.fill('dialog input', 'Operations')
    await page.click('dialog button[type=submit]')
    await page.shows('.board-tabs [aria-current]', 'Operations')
    await page.shows('.board-card .chart-key', 'running')
    expect((await keys('.board-card')).toSorted()).toEqual(['completed', 'running'])
    const { data } = await service.api('GET', '/api/v1/queries')
    expect(data.items[0]).toMatchObject({ name: 'runs by status', chart: { kind: 'bar' } })
    // A range before there were runs.
    await page.go(`${await page.evaluate<string>('location.hash')}?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z`)
    await page.shows('.board-nothing', 'No rows')
    await page.click('button', 'Reset to last 24 hours')
    await page.shows('.board-card .chart-key', 'running')
    // The title leads to the query, in the same range; what is changed there can be saved.
    await page.click('.board-card h2 a')
    await page.shows('.result .chart-key', 'running')
    await page.choose('select[aria-label="Kind of chart"]', 'Line')
    await page.click('.view-tools button', 'Save "runs by status"')
    await page.shows('.view-tools button', 'Pin to a board')
    expect((await service.api('GET', '/api/v1/queries')).data.items[0].chart).toEqual({ kind: 'line' })
  })

  test('a saved query is deleted for everyone once that is confirmed; the editor keeps its text', async () => {
    const text = 'SELECT 1 AS one'
    const id = await save('soon gone', text)
    const ids = async () => {
      const { items } = (await service.api('GET', '/api/v1/queries')).data
      return items.map(({ query_id }: { query_id: string }) => query_id)
    }
    await page.go('#/keys')
    await page.until(`document.querySelector('.keys')`)
    await page.go(`#/sql?${new URLSearchParams({ q: text, saved: id })}`)
    await page.click('.view-tools button', 'Delete "soon gone"')
    await page.click('dialog button', 'Keep it')
    expect(await ids()).toContain(id)
    await page.click('.view-tools button', 'Delete "soon gone"')
    await page.click('dialog button', 'Delete it for everyone')
    await page.until(`[...document.querySelectorAll('.view-tools button')].some((each) => each.textContent === 'Save')`)
    expect(await ids()).not.toContain(id)
    expect(await query('saved')).toBeNull()
    expect(await query('q')).toBe(text)
    expect(await page.text('select[aria-label="Saved queries"]')).not.toContain('soon gone')
  })

  test('charts are added, moved and removed, boards are renamed and deleted; edits of others are not overwritten', async () => {
    const first = await save('first', 'SELECT 1 AS a')
    await save('second', 'SELECT 2 AS b')
    const { data: board } = await service.api('POST', '/api/v1/boards', { name: 'mine', charts: [{ query_id: first }] })
    const titles = `[...document.querySelectorAll('.board-card h2')].map((title) => title.textContent).join()`
    await page.go(`#/boards/${board.board_id}`)
    await page.until(`${titles} === 'first'`)
    await page.evaluate('performance.clearResourceTimings()')
    await page.click('button', 'Add chart')
    await page.choose('dialog select', 'second')
    await page.click('dialog button[type=submit]')
    await page.until(`${titles} === 'first,second'`)
    await page.click('button', 'Edit')
    // Clicked twice: the page is not in its own way.
    await page.evaluate(
      `((button) => (button.click(), button.click()))(document.querySelector('[aria-label="Move second earlier"]'))`,
    )
    await page.until(`${titles} === 'second,first'`)
    expect(await page.count('.boards [role=alert]')).toBe(0)
    const calls = `performance.getEntriesByType('resource').map(({ name }) => new URL(name).pathname)`
    // The boards are read again after each edit; the saved queries are kept.
    await page.until(`${calls}.filter((path) => path === '/api/v1/boards').length >= 2`)
    expect(await page.evaluate<string[]>(calls)).not.toContain('/api/v1/queries')
    // Somebody else removes a chart meanwhile.
    const path = `/api/v1/boards/${board.board_id}`
    const { data: read } = await service.api('GET', path)
    await service.api('PATCH', path, { version: read.version, charts: read.charts.slice(0, 1) })
    await page.click('button[aria-label="Remove second"]')
    await page.shows('.boards [role=alert]', 'Somebody else has changed this.')
    await page.until(`${titles} === 'second'`)
    await page.click('button[aria-label="Remove second"]')
    await page.shows('.empty', 'No charts on this board yet')
    await page.click('button', 'Rename')
    await page.fill('dialog input', 'ours')
    await page.click('dialog button[type=submit]')
    await page.shows('.board-tabs [aria-current]', 'ours')
    await page.click('button', 'Delete board')
    await page.click('dialog button', 'Delete the board')
    await page.until(`![...document.querySelectorAll('.board-tabs a')].some((link) => link.textContent === 'ours')`)
    expect((await service.api('GET', path)).status).toBe(404)
  })

  test('only charts in view are read, at most two at a time', async () => {
    const ids: { query_id: string }[] = []
    for (let i = 0; i < 24; i++)
      ids.push({ query_id: await save(`chart ${i}`, `SELECT ${i} AS n, count() AS all FROM numbers(2000000)`) })
    const { data: board } = await service.api('POST', '/api/v1/boards', { name: 'full', charts: ids })
    await page.evaluate(`void (window.calls = { now: 0, most: 0, all: 0 }, window.fetch = ((real) => async (url, options) => {
      const isQuery = url === '/api/v1/query'
      if (isQuery) calls.all++, calls.now++, calls.most = Math.max(calls.most, calls.now)
      try { return await real(url, options) } finally { if (isQuery) calls.now-- }
    })(window.fetch))`)
    await page.go(`#/boards/${board.board_id}`)
    await page.until(`document.querySelector('.board-card .result-row') && calls.now === 0`)
    const { all, most } = await page.evaluate<{ all: number; most: number }>('calls')
    expect(most).toBeLessThanOrEqual(2)
    expect(all).toBeLessThan(16)
    await page.evaluate(`void [...document.querySelectorAll('.board-card')].at(-1).scrollIntoView()`)
    await page.until(`[...document.querySelectorAll('.board-card')].at(-1).querySelector('.result-row')`)
  })

  test('a line of the live view opens in place, and stays where it is; text filters what is said', async () => {
    await page.go('#/live')
    await page.shows('.tail-state', 'Live ·')
    const live = await reporter.start()
    await reporter.events(live, [
      { type: 'llm.call', payload: { model: 'm', note: 'the needle' } },
      { type: 'tool.call.finished', payload: { tool: 't' } },
      { type: 'step', payload: { n: 1 } },
    ])
    await page.until(`document.querySelectorAll('.tail-row').length >= 4`)
    const kinds = `[...document.querySelectorAll('.tail-kind')].map((kind) => kind.textContent)`
    expect(await page.evaluate<string[]>(kinds)).toEqual(expect.arrayContaining(['run', 'model', 'tool', 'event']))
    await page.click('.tail-open', 'llm.call')
    await page.shows('.tail-detail pre', '"note": "the needle"')
    const links = `[...document.querySelectorAll('.tail-detail a')].map((link) => link.hash.split('?')[0])`
    expect((await page.evaluate<string[]>(links))[0]).toBe(`#/runs/${live}`)
    await page.shows('.tail-state', 'Paused')
    await reporter.events(live, [{ type: 'later', payload: {} }])
    await page.press('Escape')
    await page.until(`document.querySelector('.tail-detail') === null`)
    await page.fill('input[aria-label=Text]', 'NEEDLE')
    await page.until(`document.querySelectorAll('.tail-row').length === 1`)
    expect(await query('q')).toBe('NEEDLE')
    await page.fill('input[aria-label=Text]', '')
    await page.until(`document.querySelectorAll('.tail-row').length >= 4`)
    await page.click('button', 'Resume')
    await page.shows('.tail-row .event-type', 'later')
  })

  test('more than can be read is shown as a sample, with its failures, and said so', async () => {
    const live = await reporter.start()
    const many = (level: string) =>
      Array.from({ length: 4_000 }, (_, i) => ({
        type: i % 1_000 === 7 ? 'rare' : 'many',
        level: i % 1_000 === 7 ? 'error' : level,
      }))
    await page.click('button', 'Pause')
    await page.click('button', 'Skip to now')
    await page.shows('.tail-state', 'Live ·')
    await page.go('#/keys')
    await page.until(`document.querySelector('.keys')`)
    await page.go('#/live')
    await page.shows('.tail-state', 'Live ·')
    for (let i = 0; i < 2; i++) await reporter.events(live, many('info'))
    await page.shows('.tail-state', 'showing 1 of')
    expect(await page.count('.tail-row')).toBeLessThan(100)
    await page.until(
      `Number(/([\\d,]+) since/.exec(document.querySelector('.tail-state').textContent)[1].replaceAll(',', '')) >= 8_000`,
    )
    await page.fill('input[aria-label=Text]', 'rare')
    await page.until(`document.querySelectorAll('.tail-row').length === 8`)
  })
})
