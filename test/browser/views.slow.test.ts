import { beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { newAgent } from '../support/api.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { chromium, type DashboardPage, openDashboard } from './dashboard-page.ts'

/** All views of the dashboard: accessible, and within the screen. */

const AXE = readFileSync(Bun.resolveSync('axe-core/axe.min.js', import.meta.dir), 'utf8')
/** Wider than a narrow screen, in the lists that offer it, too. */
const LONG_NAME = 'a reporter whose name is a sentence that says what it reports, to whom and how often'
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
    const { data } = await report('run/start', { agent_id: agent.agentId, tags: ['nightly'] })
    runId = data.run_id
    const payload = {
      'gen_ai.request.model': 'm',
      latency_ms: 5,
      messages: [{ role: 'user', content: '# Hi\n\n- `a`' }],
      completion: 'Hello',
    }
    await report('events', { run_id: runId, events: [{ type: 'llm.call', payload }] })
    page = await openDashboard(service.url)
    await page.signIn(service.workspaceKey)
    // What each view shows when it is there.
    views = {
      '#/overview': '.tile, .states b',
      '#/runs': '.run-list .row-link',
      [`#/runs/${runId}`]: '.span-row',
      [`#/runs/${runId}?tab=conversation`]: '.message',
      [`#/runs/${crypto.randomUUID()}`]: '.empty',
      '#/live': '.tail',
      '#/waiting': '.waiting .empty',
      '#/sessions': '.sessions .empty',
      '#/agents': '.card',
      [`#/agents/${agent.agentId}?tab=settings`]: '.agent-editor',
      '#/agents?new=yes': '.agent-editor',
      '#/keys': '.keys td',
      '#/sql': '.editor[data-ready]',
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
    const { data } = await service.api('POST', '/api/v1/keys', { name: 'to be revoked' })
    await page.go('#/keys')
    await page.shows('.keys td', 'to be revoked')
    // Beside the edge of what scrolls, too.
    await page.until(
      `(({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth)(document.querySelector('.table-scroll'))`,
    )
    await page.until(isSeen('.row-actions button:last-child'))
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
