import { beforeAll, describe, expect, test } from 'bun:test'
import { startTestService, type TestService } from '../support/service.ts'
import { chromium, type DashboardPage, openDashboard } from './dashboard-page.ts'

/** What all views of the dashboard have from its kit: states of what is read, forms, dialogs and lists. */

describe.skipIf(chromium === null)('the kit of the dashboard (needs a Chromium)', () => {
  let service: TestService
  let page: DashboardPage

  beforeAll(async () => {
    service = await startTestService()
    page = await openDashboard(service.url)
    await page.signIn(service.workspaceKey)
    await page.until(`document.querySelector('.waiting-now')`)
    await page.evaluate(`void (globalThis.realFetch = fetch)`)
  })

  /** From now on, the service refuses these requests: `GET /api/v1/secrets`. Null: none. */
  const refuse = (request: string | null, error: object = { code: 'INTERNAL', message: 'out of order' }) =>
    page.evaluate(`void (globalThis.fetch = (url, options = {}) =>
      (options.method ?? 'GET') + ' ' + String(url).split('?')[0] === ${JSON.stringify(request)}
        ? Promise.resolve(Response.json(${JSON.stringify({ data: null, error })}, { status: 500 }))
        : realFetch(url, options))`)

  test('what cannot be read says why in the place of the content, and is read again on request', async () => {
    await refuse('GET /api/v1/secrets')
    await page.go('#/settings?tab=secrets')
    await page.shows('.secrets [role=alert]', 'Out of order.')
    expect(await page.count('.secrets .skeleton')).toBe(0)
    await refuse(null)
    await page.click('.secrets [role=alert] button', 'Try again')
    await page.shows('.secrets', 'No secrets yet.')
    expect(await page.count('.secrets [role=alert]')).toBe(0)
  })

  test('what cannot be read again stays, below why', async () => {
    await refuse('GET /api/v1/secrets')
    await page.fill('.secret-form input[name=name]', 'API_TOKEN')
    await page.fill('.secret-form input[name=value]', 'value')
    await page.click('.secret-form button', 'Set the secret')
    await page.shows('.secrets [role=alert]', 'Out of order.')
    await page.shows('.secrets [role=alert] + p', 'No secrets yet.')
    await refuse(null)
    await page.click('.secrets [role=alert] button', 'Try again')
    await page.shows('.secrets td', 'API_TOKEN')
  })

  test('what does not exist is said in words of its own', async () => {
    await page.go('#/users/nobody')
    await page.shows('.user .empty', 'No run names this user.')
    expect(await page.count('.user [role=alert]')).toBe(0)
  })
})
