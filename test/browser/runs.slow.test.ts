import { beforeAll, describe, expect, test } from 'bun:test'
import { newReporter, type Reporter } from '../support/feeds.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { chromium, type DashboardPage, openDashboard } from './dashboard-page.ts'

/** The list of runs: its columns, filters and views, comparing two runs, and cancelling several. */

describe.skipIf(chromium === null)('the list of runs (needs a Chromium)', () => {
  let service: TestService
  let page: DashboardPage
  let reporter: Reporter
  let failed: string
  let completed: string
  let running: string[]

  const call = (model: string) => ({ type: 'llm.call', payload: { model, latency_ms: 5 } })
  const rowOf = (runId: string) => `document.querySelector('[data-run="${runId}"]')`
  const cell = (runId: string, column: string) => `${rowOf(runId)}?.querySelector('.col-${column}')?.textContent`
  const end = (path: string, body: object) =>
    service.api('POST', `/api/ingest/v1/run/${path}`, body, { key: reporter.agentKey })

  beforeAll(async () => {
    service = await startTestService()
    reporter = await newReporter(service.api)
    running = [await reporter.start({ input: { message: 'first question' } }), await reporter.start()]
    failed = await reporter.start({ input: { topic: 'a\nb' }, external_user_id: 'anna', session_id: 'chat 1' })
    completed = await reporter.start({ input: { topic: 'a\nc' } })
    await reporter.events(failed, [call('model-one'), { type: 'tool.call.finished', payload: { tool: 'lookup' } }])
    await reporter.events(completed, [call('model-two')])
    await end('fail', { run_id: failed, error_message: 'the tool was away' })
    await end('complete', { run_id: completed, output: { message: 'an answer' } })
    page = await openDashboard(service.url)
    await page.signIn(service.workspaceKey)
    await page.until(`document.querySelector('.tile, .states')`)
  })

  test('shows what runs got and gave, and their models, also of one that ends meanwhile; the choice is kept', async () => {
    await page.go('#/runs?cols=input,output,model')
    await page.until(`${cell(running[0]!, 'input')} === 'first question'`)
    await page.until(`${cell(completed, 'output')} === 'an answer' && ${cell(completed, 'model')} === 'model-two'`)
    const last = await reporter.start({ input: { message: 'the last question' } })
    await page.click('.new-runs button')
    await page.until(`${cell(last, 'input')} === 'the last question'`)
    await end('complete', { run_id: last, output: { message: 'the last answer' } })
    await page.click('summary[aria-label=Columns]')
    await page.click('.menu-body label', 'Model')
    await page.until(`location.hash.endsWith('cols=input%2Coutput')`)
    await page.until(`${cell(last, 'output')} === 'the last answer'`)
    await page.go('#/runs')
    await page.until(`document.querySelector('th.col-output') && !document.querySelector('th.col-model, th.col-cost')`)
  })

  test('several statuses, with the errors of those that failed, are a view that can be saved, renamed and deleted', async () => {
    await page.click('.statuses input[name=failed]')
    await page.until(`${cell(failed, 'error')} === 'the tool was away' && ${rowOf(completed)} === null`)
    await page.click('.statuses input[name=timed_out]')
    await page.shows('.view-links [aria-current]', 'Failed')
    await page.fill('.menu-body input[name=user]', 'anna')
    await page.shows('.chip', 'User: anna')
    await page.click('.view-bar button', 'Save view')
    await page.fill('dialog input', 'Of Anna / all')
    await page.click('dialog button[type=submit]')
    await page.shows('.view-links [aria-current]', 'Of Anna / all')
    const other = await page.newTab(`${service.url}/#/runs`)
    await other.click('.view-links a', 'Of Anna / all')
    await other.until(`${cell(failed, 'error')} === 'the tool was away' && ${rowOf(completed)} === null`)
    await other.close()
    await page.send('Page.bringToFront')
    await page.click('.view-bar button', 'Rename')
    await page.fill('dialog input', 'Of Anna')
    await page.click('dialog button[type=submit]')
    await page.until(`document.querySelector('.view-links [aria-current]')?.textContent === 'Of Anna'`)
    // Somebody else changes it meanwhile.
    await service.api('PUT', '/api/v1/views/Of%20Anna', { query: 'status=failed' })
    await page.click('.view-bar button', 'Delete')
    await page.click('dialog button', 'Delete the view')
    await page.shows('dialog .problem', 'Somebody else has changed this.')
    await page.click('dialog button', 'Keep it')
    await page.go('#/users')
    await page.go('#/runs')
    await page.click('.view-links a', 'Of Anna')
    await page.click('.view-bar button', 'Delete')
    await page.click('dialog button', 'Delete the view')
    await page.until(`!document.querySelector('.view-links').textContent.includes('Anna')`)
    await page.click('.view-links a', 'All')
    await page.until(rowOf(completed))
  })

  test('two runs are chosen with the keyboard and compared: figures, texts and steps side by side', async () => {
    for (const runId of [completed, failed]) {
      await page.evaluate(`${rowOf(runId)}.querySelector('.row-link').focus()`)
      await page.press('x')
    }
    await page.shows('.chosen-runs', '2 runs chosen')
    await page.click('.chosen-runs a')
    await page.until(`location.hash === '#/runs/compare/${failed}/${completed}'`)
    await page.shows('.compare-steps', 'model-one → model-two')
    await page.shows('.compare-steps .only-a', 'lookup')
    expect(await page.text('.diff-removed')).toContain('b"')
    expect(await page.text('.diff-added')).toContain('c"')
    await page.shows('.compare-text', 'Error (only A)')
    const { hash } = await page.evaluate<{ hash: string }>(
      `(({ hash }) => ({ hash }))(document.querySelector('.compare-steps a'))`,
    )
    expect(hash).toMatch(/\?step=/)
    await page.go(hash)
    await page.until(`document.querySelector('.step')`)
    await page.go(`#/runs/compare/${failed}/${completed}`)
    await page.shows('.compare-steps', 'model-one → model-two')
    await page.press('Escape')
    await page.until(rowOf(completed))
    expect(await page.count('.chosen-runs')).toBe(1)
    await page.press('Escape')
    await page.until(`document.querySelector('.chosen-runs') === null`)
  })

  test('several runs are cancelled at once; of each it says what became of it', async () => {
    for (const runId of [...running, failed]) await page.click(`[data-run="${runId}"] .choose input`)
    await page.click('.chosen-runs button', 'Cancel 2 runs')
    await page.shows('dialog', '1 chosen run has ended already.')
    // The page does not know yet that this one is not live.
    await end('complete', { run_id: running[1] })
    await page.fill('dialog input', 'no longer needed')
    // Enter in the field does no harm.
    await page.evaluate(`void document.querySelector('dialog input').focus()`)
    await page.press('Enter')
    await page.click('dialog button', 'Cancel 2 runs')
    await page.shows('dialog', 'Done: 3 of 3 runs')
    const outcomes = await page.evaluate<string[]>(
      `[...document.querySelectorAll('.outcomes li span')].map((each) => each.textContent)`,
    )
    expect(outcomes.toSorted()).toEqual(['cancelled', 'had already ended: completed', 'had already ended: failed'])
    const { data } = await service.api('GET', `/api/v1/runs/${running[0]}`)
    expect([data.status, data.error_message]).toEqual(['cancelled', 'no longer needed'])
    await page.click('dialog .actions button', 'Close')
    await page.shows(`[data-run="${running[0]}"]`, 'cancelled')
    expect(await page.count('.chosen-runs')).toBe(0)
    expect(page.complaintsBeside('409')).toEqual([])
  })
})
