import { beforeAll, describe, expect, test } from 'bun:test'
import { newAgent } from '../support/api.ts'
import { newHostedAgent } from '../support/hosted.ts'
import { startModelServer } from '../support/model-server.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { chromium, type DashboardPage, HOSTILE, openDashboard, SHOWN } from './dashboard-page.ts'

/** Sessions of both kinds and the users of runs in the dashboard: a real service, a real browser. */

/** Names may be any text. */
const CHAT = `chat/1 ?#% ${HOSTILE}`
const USER = `ada/? ${HOSTILE}`

describe.skipIf(chromium === null)('sessions in the dashboard (needs a Chromium)', () => {
  let service: TestService
  let page: DashboardPage
  let failedRun: string
  let hostedSession: string

  beforeAll(async () => {
    const model = startModelServer(({ body }) => ({ text: `You said: ${body.messages.at(-1)?.content}` }))
    service = await startTestService({ OPENAI_BASE_URL: model.url })
    const { agentId, agentKey } = await newAgent(service.api, { name: 'shop assistant' })
    const report = async (path: string, body: object) =>
      (await service.api('POST', `/api/ingest/v1/run/${path}`, body, { key: agentKey })).data
    const start = { agent_id: agentId, session_id: CHAT, external_user_id: USER }
    const first = await report('start', { ...start, input: { message: `Do you have *tea*? ${HOSTILE}`, shop: 7 } })
    const usage = { input_tokens: 1_200, output_tokens: 34, cost_usd: 0.5 }
    await report('complete', { run_id: first.run_id, output: { text: 'Yes, **green**.' }, usage })
    // A program that sends the whole conversation again.
    const messages = [
      { role: 'user', content: 'Do you have *tea*?' },
      { role: 'assistant', content: 'Yes, **green**.' },
      { role: 'user', content: 'A pot, please.' },
    ]
    failedRun = (await report('start', { ...start, input: { messages } })).run_id
    await report('fail', { run_id: failedRun, error_message: 'out of tea' })
    const hosted = await newHostedAgent(service, { name: 'helper' })
    const body = { start_session: true, external_user_id: USER, input: { message: 'Hello there' } }
    hostedSession = (await hosted.invoke(body)).data.session_id
    page = await openDashboard(service.url)
    await page.signIn(service.workspaceKey)
  })

  test('lists both kinds, filters them by the address, and shows a conversation across its runs', async () => {
    await page.go('#/sessions')
    await page.until(`document.querySelectorAll('.session-table tbody tr').length === 2`)
    await page.shows('.session-table tr', 'You said: Hello there')
    await page.choose('select[aria-label=Kind]', 'Reported by programs')
    await page.until(`document.querySelectorAll('.session-table tbody tr').length === 1`)
    expect(await page.evaluate<string>('location.hash')).toContain('kind=external')
    for (const text of [`Do you have *tea*? ${SHOWN}`, 'out of tea', 'shop assistant', 'failed', '1.23k', '$0.50'])
      await page.shows('.session-table tbody tr', text)
    await page.click('.session-table .row-link')
    await page.until(`document.querySelectorAll('.session-run').length === 2`)
    const said = await page.evaluate<string[]>(
      `[...document.querySelectorAll('.session-runs :is(.markdown, .problem)')].map(({ innerText }) => innerText.trim())`,
    )
    // What the second run repeats is not shown again.
    expect(said).toEqual([`Do you have tea? ${SHOWN}`, 'Yes, green.', 'A pot, please.', 'out of tea'])
    await page.shows('.session-run .message', '"shop": 7')
    await page.click('.session-run-foot a', `Run …${failedRun.slice(-8)}`)
    await page.until(`location.hash === '#/runs/${failedRun}'`)
  })

  test('a user has a page with sessions, runs and totals', async () => {
    await page.go(`#/sessions/${encodeURIComponent(CHAT)}`)
    await page.click('.detail .facts .name-link')
    await page.shows('.user h1', USER.replace(HOSTILE, SHOWN))
    await page.until(`document.querySelectorAll('.session-table tbody tr').length === 2`)
    await page.until(`document.querySelectorAll('.user-runs tbody tr').length === 3`)
    await page.shows('.user-head dd', '1 (33.3%)')
    await page.shows('.user-activity', '3 runs, 1 failed')
    await page.click('.user .view-head a', 'All runs')
    await page.until(`document.querySelectorAll('.run-list tbody tr').length === 3`)
    await page.go('#/users')
    await page.shows('.user-table td', 'ada/? <img')
    expect(await page.reversed()).toEqual([])
  })

  test('a hosted session can be continued', async () => {
    await page.go(`#/sessions/${hostedSession}`)
    await page.fill('.session-reply textarea', 'And now?')
    await page.click('.session-reply button', 'Send')
    await page.shows('.session-run .message', 'You said: And now?')
    expect(await page.evaluate('window.pwned')).toBeUndefined()
    expect(page.complaintsBeside('404')).toEqual([])
  })
})
