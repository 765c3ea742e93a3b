import { beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { eventually } from '../support/eventually.ts'
import { newReporter, type Reporter } from '../support/feeds.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { type Receiver, startReceiver } from '../support/webhooks.ts'
import { chromium, type DashboardPage, openDashboard } from './dashboard-page.ts'

/** Webhooks and alerts in the dashboard, as people use them: a real service, and a real receiver. */

const AXE = readFileSync(Bun.resolveSync('axe-core/axe.min.js', import.meta.dir), 'utf8')
/** Where pictures of the page are stored; undefined: nowhere. */
const PICTURES = process.env.PICTURES

describe.skipIf(chromium === null)('webhooks and alerts in the dashboard (need a Chromium)', () => {
  let service: TestService
  let page: DashboardPage
  let reporter: Reporter
  let receiver: Receiver

  beforeAll(async () => {
    receiver = startReceiver()
    service = await startTestService({ EGRESS_ALLOW: '127.0.0.1' })
    reporter = await newReporter(service.api)
    page = await openDashboard(service.url)
    await page.signIn(service.workspaceKey)
    await page.until(`document.querySelector('.waiting-now')`)
    await page.evaluate(`${AXE};1`)
  })

  /** What axe finds in the present view, in both themes; both are also stored as pictures, if those are wanted. */
  const check = async (name: string) => {
    const found: string[] = []
    for (const theme of ['light', 'dark']) {
      await page.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: theme }] })
      await page.until(`document.getAnimations().every((each) => !(each instanceof CSSTransition))`)
      const violations = `axe.run({ resultTypes: ['violations'] }).then(({ violations }) =>
        violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => id + ': ' + target)))`
      found.push(...(await page.evaluate<string[]>(violations)).map((each) => `${name} ${theme} ${each}`))
      for (const width of PICTURES === undefined ? [] : [1440, 400]) await picture(`${name}-${theme}`, width)
    }
    return found
  }
  const picture = async (name: string, width: number) => {
    await page.send('Emulation.setDeviceMetricsOverride', { width, height: 900, deviceScaleFactor: 1, mobile: false })
    await Bun.sleep(300)
    const { data } = await page.send<{ data: string }>('Page.captureScreenshot', { format: 'png' })
    await Bun.write(`${PICTURES}/${name}-${width}.png`, Buffer.from(data, 'base64'))
    await page.send('Emulation.clearDeviceMetricsOverride')
  }
  const lastOf = (path: string) => page.evaluate<string>(`location.hash.split('?')[0].replace('${path}', '')`)

  test('a webhook is created, tested, and its secret is shown once', async () => {
    await page.go('#/webhooks')
    await page.shows('.empty', 'No webhooks yet')
    await page.click('.view-tools a', 'New webhook')
    await page.fill('.webhook-form input[type=url]', 'http://10.0.0.1/hook')
    await page.click('.webhook-form button', 'Create')
    const at = 'document.activeElement'
    await page.until(`${at}.type === 'url' && ${at}.ariaInvalid === 'true'`)
    const described = `${at}.getAttribute('aria-describedby').split(' ').map((id) => document.getElementById(id).className)`
    expect(await page.evaluate<string[]>(described)).toEqual(['hint', 'field-problem'])
    expect(await page.count('.webhook-form .problem')).toBe(0)
    await page.fill('.webhook-form input[type=url]', receiver.url)
    await page.click('.webhook-form button', 'Create')
    await page.shows('.made-key', 'it is not shown again')
    receiver.secret = await page.text('.made-key > .command pre')
    expect(receiver.secret).toStartWith('whsec_')
    await page.click('.head-actions button', 'Send a test')
    await page.shows('.test-outcome', 'arrived')
    expect(await page.text('.test-outcome')).toContain('HTTP 204')
    expect(receiver.received).toHaveLength(1)
    expect(await check('webhook-new')).toEqual([])
    await page.go('#/keys')
    await page.until(`document.querySelector('.keys')`)
    await page.go('#/webhooks')
    await page.click('.webhook-table .row-link')
    await page.until(`document.querySelector('.webhook .facts')`)
    expect(await page.count('.made-key')).toBe(0)
  })

  test('its deliveries are listed, and one is sent again with the same id', async () => {
    const runId = await reporter.start()
    await reporter.end(runId)
    await eventually(() => receiver.received.some(({ body }) => body.type === 'run.completed'))
    // The list has it once SQL does. A reading is not disturbed by the next one, however long it takes.
    const [{ webhook_id }] = (await service.api('GET', '/api/v1/webhooks')).data.items
    const listed = async () => (await service.api('GET', `/api/v1/webhooks/${webhook_id}/deliveries`)).data.items
    await eventually(async () => (await listed()).some(({ run_id }: { run_id: string }) => run_id === runId))
    await page.click('.deliveries button', 'Refresh')
    await page.until(`document.querySelector('.delivery-list a')`)
    expect(await page.evaluate<string>(`document.querySelector('.delivery-list a').hash`)).toBe(`#/runs/${runId}`)
    const before = receiver.received.length
    await page.click('.delivery-list button', 'Resend')
    await eventually(() => receiver.received.length === before + 1)
    const [first, second] = receiver.received.slice(-2)
    expect(second?.id).toBe(first?.id as string)
    expect(second?.body).toEqual(first?.body)
    await page.until(`document.querySelector('.webhook .chart-key')`)
    expect(await check('webhook')).toEqual([])
  })

  test('it gets a new secret, another filter, and is disabled', async () => {
    await page.click('.head-actions button', 'Rotate…')
    await page.click('dialog button', 'Rotate')
    await page.until(`document.querySelector('.made-key > .command pre')`)
    expect(await page.text('.made-key > .command pre')).not.toBe(receiver.secret)
    await page.click('.webhook .tabs button', 'Settings')
    await page.choose('.webhook-form select[name=selection]', 'Activity that matches a filter')
    await page.click('.filter-fields label', 'failed')
    await page.click('.webhook-form button', 'Save')
    await page.shows('.webhook .facts', 'activity that is failed')
    await page.click('.head-actions button', 'Disable')
    await page.shows('.webhook .status', 'disabled')
    const { items } = (await service.api('GET', '/api/v1/webhooks')).data
    expect(items).toMatchObject([{ status: 'disabled', filter: { status: ['failed'] } }])
    expect(await check('webhook-settings')).toEqual([])
  })

  test('an edit overwrites nothing that somebody else has changed meanwhile', async () => {
    const path = `/api/v1/webhooks/${(await service.api('GET', '/api/v1/webhooks')).data.items[0].webhook_id}`
    await page.fill('.webhook-form input[name=description]', 'mine')
    await service.api('PATCH', path, { description: 'theirs' })
    await page.click('.webhook-form button', 'Save')
    await page.shows('.webhook-form .problem', 'Somebody else has changed this.')
    expect((await service.api('GET', path)).data.description).toBe('theirs')
  })

  test('an alert begins with a template, is tried over the last day, saved and disabled', async () => {
    await page.go('#/alerts')
    await page.shows('.empty', 'No alerts yet')
    await page.click('.view-tools a', 'New alert')
    await page.until(`document.querySelectorAll('.alert-form select[name=template] option').length > 5`)
    await page.evaluate(
      `((field) => (field.value = 'error_rate', field.dispatchEvent(new Event('change', { bubbles: true }))))(document.querySelector('select[name=template]'))`,
    )
    await page.until(`document.querySelector('.alert-form input[name=name]').value !== ''`)
    await page.click('.alert-form .choices label')
    await page.click('.alert-form button', 'Try the query')
    await page.until(`document.querySelector('.alert-query .result-row, .alert-query > .hint')`)
    await page.choose('.dry-run select[aria-label=Step]', 'every 6h')
    await page.click('.dry-run button', 'Dry run')
    await page.shows('.dry-run', 'It would')
    expect(await check('alert-new')).toEqual([])
    await page.fill('.alert-form input[name=name]', 'Too many failures')
    await page.click('.alert-form button', 'Create')
    await page.shows('.alert-pane h2', 'Too many failures')
    const path = `/api/v1/alerts/${await lastOf('#/alerts/')}`
    expect((await service.api('GET', path)).data).toMatchObject({ name: 'Too many failures', enabled: true })
    await page.shows('.value-chart', 'no rows in the last day')
    expect(await check('alert')).toEqual([])
    await page.click('.head-actions button', 'Disable')
    await page.shows('.alert-pane .status', 'disabled')
    await page.click('.alert-pane .tabs button', 'History')
    await page.shows('.alert-pane', 'Its state has never changed.')
  })

  test('a query becomes an alert, which fires and is seen in the overview', async () => {
    await page.go(`#/sql?${new URLSearchParams({ q: 'SELECT status, count() AS runs FROM runs GROUP BY status' })}`)
    await page.click('.view-tools a', 'Alert on this')
    await page.until(`document.querySelector('.alert-form .editor[data-ready]')`)
    await page.fill('.alert-form input[name=name]', 'Runs end')
    await page.fill('.alert-form input[name=column]', 'runs')
    await page.fill('.alert-form input[name=value]', '100')
    await page.fill('.alert-form input[name=by]', 'status')
    await page.click('.alert-form button', 'Create')
    await page.shows('.alert-pane .facts', 'runs > 100')
    const { items } = (await service.api('GET', '/api/v1/alerts')).data
    expect(items).toHaveLength(2)
    expect(items[0]).toMatchObject({
      query: 'SELECT status, count() AS runs FROM runs GROUP BY status',
      by: ['status'],
    })
    await page.go('#/overview')
    await page.shows('.alerts-now', 'No alert is firing.')
    expect(page.complaintsBeside('400|409')).toEqual([])
  })
})
