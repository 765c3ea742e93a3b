import { beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { newAgent } from '../support/api.ts'
import { newHostedAgent } from '../support/hosted.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { chromium, type DashboardPage, openDashboard } from './dashboard-page.ts'

/** All views of the dashboard: accessible, and within the screen. */

const AXE = readFileSync(Bun.resolveSync('axe-core/axe.min.js', import.meta.dir), 'utf8')
/** Wider than a narrow screen, in the lists that offer it, too. */
const LONG_NAME = 'a reporter whose name is a sentence that says what it reports, to whom and how often'
const UNFOLD_TOOLS = `document.querySelectorAll('.tool').forEach((each) => void (each.open = true))`
const NARROW = { width: 380, height: 800, deviceScaleFactor: 1, mobile: false }

describe.skipIf(chromium === null)('the views of the dashboard (need a Chromium)', () => {
  let service: TestService
  let page: DashboardPage
  let views: Readonly<Record<string, string>>
  let runId: string
  let agentKey: string

  beforeAll(async () => {
    service = await startTestService()
    const agent = await newAgent(service.api, { name: LONG_NAME })
    agentKey = agent.agentKey
    const tool = { type: 'mcp', name: LONG_NAME.replaceAll(/\W/g, '_').slice(0, 64), description: LONG_NAME }
    const hosted = await newHostedAgent(service, { tools: [{ ...tool, server_url: 'https://example.com/mcp' }] })
    await service.api('PATCH', `/api/v1/agents/${hosted.agentId}`, { prompt: `${LONG_NAME}\n${LONG_NAME}` })
    await service.api('PUT', `/api/v1/secrets/${'S'.repeat(64)}`, { value: 'value' })
    const { data } = await report('run/start', {
      ...{ agent_id: agent.agentId, tags: ['nightly'], input: { message: LONG_NAME } },
      ...{ session_id: LONG_NAME, external_user_id: LONG_NAME },
    })
    runId = data.run_id
    const payload = {
      'gen_ai.request.model': 'm',
      latency_ms: 5,
      messages: [{ role: 'user', content: '# Hi\n\n- `a`' }],
      completion: 'Hello',
    }
    await report('events', { run_id: runId, events: [{ type: 'llm.call', payload }] })
    const charts = [
      {
        name: 'runs by status',
        query: 'SELECT status, agent_name, count() AS runs FROM runs GROUP BY status, agent_name',
        chart: {},
      },
      { name: 'all of them', query: 'SELECT run_id, agent_id, status FROM runs' },
      {
        name: 'in numbers',
        query: 'SELECT count() AS runs, sum(cost_usd) AS cost_usd FROM runs',
        chart: { kind: 'number' },
      },
    ]
    const saved = await Promise.all(charts.map((each) => service.api('POST', '/api/v1/queries', each)))
    const ids = saved.map(({ data: { query_id } }) => ({ query_id }))
    const board = await service.api('POST', '/api/v1/boards', { name: LONG_NAME, charts: ids })
    const chartOf = (kind: string) => {
      const q = 'SELECT toDateTime(number) AS at, number AS n, number * 2 AS cost_usd FROM numbers(9)'
      return `#/sql?${new URLSearchParams({ q, as: 'chart', chart: JSON.stringify({ kind }) })}`
    }
    page = await openDashboard(service.url)
    await page.signIn(service.workspaceKey)
    // What each view shows when it is there.
    views = {
      '#/overview': '.tile, .states b',
      [`#/boards/${board.data.board_id}`]: '.board-card .result-row a',
      [`#/boards/${crypto.randomUUID()}`]: '.boards .hint',
      '#/runs': '.run-list .row-link',
      '#/runs?status=running,failed&cols=input,output,error,model,user,session,version': '.col-error',
      [`#/runs/compare/${runId}/${runId}`]: '.compare-steps a',
      [`#/runs/${runId}`]: '.span-row',
      [`#/runs/${runId}?tab=conversation`]: '.message',
      [`#/runs/${crypto.randomUUID()}`]: '.empty',
      '#/live': '.tail',
      '#/waiting': '.waiting .empty',
      '#/sessions': '.session-table td',
      '#/sessions?kind=hosted': '.sessions .empty',
      [`#/sessions/${encodeURIComponent(LONG_NAME)}`]: '.session-run .message',
      '#/users': '.user-table td',
      [`#/users/${encodeURIComponent(LONG_NAME)}`]: '.user-runs td',
      '#/agents': '.agent-table td',
      [`#/agents/${agent.agentId}?tab=settings`]: '.agent-editor',
      [`#/agents/${agent.agentId}?tab=versions`]: '.comparison pre',
      [`#/agents/${hosted.agentId}?tab=settings`]: '.tool',
      [`#/agents/${hosted.agentId}?tab=versions`]: '.comparison .diff',
      '#/agents?new=yes': '.agent-editor',
      '#/alerts': '.alerts .empty',
      '#/alerts?new=yes': '.alert-form .editor[data-ready]',
      '#/webhooks': '.webhooks .empty',
      '#/webhooks?new=yes': '.webhook-form',
      '#/keys': '.keys td',
      '#/settings': '.settings .facts',
      '#/settings?tab=secrets': '.secrets td',
      '#/sql': '.editor[data-ready]',
      ...Object.fromEntries(['line', 'bar', 'area'].map((kind) => [`${chartOf(kind)}`, '.editor[data-ready]'])),
    }
  })

  for (const theme of ['light', 'dark']) {
    test(`axe finds nothing in any view, ${theme}`, async () => {
      await page.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: theme }] })
      await page.evaluate(`${AXE};1`)
      const found: string[] = []
      for (const [hash, selector] of Object.entries(views)) {
        await page.go(hash)
        await page.until(`document.querySelector(${JSON.stringify(selector)})`)
        await page.evaluate(UNFOLD_TOOLS)
        const violations = `axe.run({ resultTypes: ['violations'] }).then(({ violations }) =>
          violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => id + ': ' + target)))`
        found.push(...(await page.evaluate<string[]>(violations)).map((each) => `${hash} ${each}`))
      }
      expect(found).toEqual([])
    })
  }

  test('no view is wider than a narrow screen', async () => {
    await page.send('Emulation.setDeviceMetricsOverride', NARROW)
    for (const [hash, selector] of Object.entries(views)) {
      await page.go(hash)
      await page.until(`document.querySelector(${JSON.stringify(selector)})`)
      await page.evaluate(UNFOLD_TOOLS)
      const overflow = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'
      expect({ hash, overflow: await page.evaluate<number>(overflow) }).toEqual({ hash, overflow: 0 })
    }
    await page.send('Emulation.clearDeviceMetricsOverride')
  })

  test('on a narrow screen Live shows time and payload, and keys can be revoked and looked up', async () => {
    await page.send('Emulation.setDeviceMetricsOverride', { ...NARROW, width: 400 })
    await page.go('#/live')
    await page.shows('.tail-state', 'Live ·')
    await report('events', { run_id: runId, events: [{ type: 'note', payload: { message: 'as it happens' } }] })
    await page.shows('.tail-row .preview', 'as it happens')
    const isSeen = (selector: string) => `(({ left, right, width, height }) =>
      left >= 0 && right <= innerWidth && width > 0 && height > 0)(document.querySelector('${selector}').getBoundingClientRect())`
    for (const selector of ['.tail-row .clock', '.tail-row .preview']) await page.until(isSeen(selector))
    const { agentId } = await newAgent(service.api, { name: 'unknown_service:a_program_without_a_name' })
    await service.api('POST', `/api/v1/agents/${agentId}/keys`, { name: 'a_name_without_any_space_in_it' })
    const { data } = await service.api('POST', '/api/v1/keys', { name: 'to be revoked' })
    await page.go('#/keys')
    await page.shows('.keys td', 'to be revoked')
    // Beside the edge of what scrolls, too.
    await page.until(
      `(({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth)(document.querySelector('.table-scroll'))`,
    )
    await page.until(isSeen('.row-actions button:last-child'))
    await page.click('.row-actions button', 'Revoke')
    // Who presses Enter without reading has done no harm.
    await page.until(`document.activeElement.closest('dialog')`)
    expect(await page.evaluate<string>('document.activeElement.ariaLabel')).toBe('Close')
    await page.press('Enter')
    await page.until(`!document.querySelector('dialog')`)
    await page.click('.row-actions button', 'Revoke')
    await page.click('.row-actions button', 'Revoke this key')
    await page.until(`!document.querySelector('.keys').textContent.includes('to be revoked')`)
    await page.choose('select[aria-label=Status]', 'Revoked keys')
    await page.shows('.keys td', `…${data.last4}`)
    expect(await page.count('.row-actions button')).toBe(0)
    await page.go('#/overview')
    await page.send('Emulation.clearDeviceMetricsOverride')
  })

  test('on a narrow screen the navigation scrolls to the current view', async () => {
    await page.send('Emulation.setDeviceMetricsOverride', NARROW)
    for (const view of ['keys', 'overview']) {
      await page.go(`#/${view}`)
      await page.until(`(({ left, right }) => left >= 0 && right <= innerWidth)
        (document.querySelector('nav a[href="#/${view}"][aria-current]').getBoundingClientRect())`)
    }
    await page.send('Emulation.clearDeviceMetricsOverride')
  })

  async function report(path: string, body: unknown) {
    const answer = await service.api('POST', `/api/ingest/v1/${path}`, body, { key: agentKey })
    expect(answer.error).toBeNull()
    return answer
  }
})
