import { beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { newReporter, type Reporter } from '../support/feeds.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { chromium, type DashboardPage, openDashboard } from './dashboard-page.ts'

/** Scores in a real browser: on the page of a run, as thumbs, in the list of runs and over time. */

const AXE = readFileSync(Bun.resolveSync('axe-core/axe.min.js', import.meta.dir), 'utf8')
const STEP = crypto.randomUUID()

describe.skipIf(chromium === null)('scores (needs a Chromium)', () => {
  let service: TestService
  let reporter: Reporter
  let page: DashboardPage
  let runId: string
  let otherId: string

  const score = async (more: object) => {
    const scores = [{ run_id: runId, ...more }]
    const { status, text } = await service.api('POST', '/api/ingest/v1/scores', { scores }, { key: reporter.agentKey })
    if (status !== 200) throw new Error(text)
  }
  const stored = async () => (await service.api('GET', `/api/v1/runs/${runId}/scores`)).data.items
  const pressed = (of: string, label: string) =>
    `document.querySelector('${of} .thumb[aria-label^="${label}"]')?.getAttribute('aria-pressed')`
  const axe = () => {
    const violations = `axe.run({ resultTypes: ['violations'] }).then(({ violations }) =>
      violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html).join(' ')))`
    return page.evaluate<string[]>(`(() => { ${AXE} })() ?? ${violations}`)
  }

  beforeAll(async () => {
    service = await startTestService()
    reporter = await newReporter(service.api)
    runId = await reporter.start({ input: { message: 'Why?' } })
    otherId = await reporter.start()
    await reporter.task(runId, { id: STEP, name: 'look it up', status: 'completed' })
    const messages = [{ role: 'user', content: 'Why?' }]
    await reporter.events(runId, [
      { type: 'llm.call', id: 'call-1', payload: { model: 'm-1', messages, response: 'Because.' } },
    ])
    await score({ name: 'similarity', value: 0.8251, comment: 'close <b>enough</b>', source: 'judge' })
    await score({ name: 'tone', label: 'friendly', task_id: STEP, metadata: { by: 'Grace' } })
    page = await openDashboard(service.url)
    await page.signIn(service.workspaceKey)
    await page.shows('.waiting-now', 'Nothing waits')
  })

  test('a run lists its scores, as they arrive, and at the steps that they are about', async () => {
    await page.go(`#/runs/${runId}?tab=scores`)
    await page.shows('.score-table', 'similarity')
    expect(await page.text('.score-table')).toContain('0.8251')
    expect(await page.text('.score-table')).toContain('close <b>enough</b>')
    await score({ id: 's1', name: 'correct', value: true })
    await page.shows('.score-table tbody tr:first-child', 'correct')
    await score({ id: 's1', name: 'correct', value: false, label: 'wrong' })
    await page.shows('[data-score=s1] .score-value', 'false · wrong')
    expect(await page.count('.score-table tbody tr')).toBe(3)
    await score({ id: 'a/b', name: 'mistaken', value: 1 })
    await page.shows('.score-table', 'mistaken')
    await page.click('[data-score="a/b"] button', 'Delete')
    await page.click('dialog button', 'Delete the score')
    await page.until(`!document.querySelector('[data-score="a/b"]')`)
    expect((await stored()).map(({ name }: { name: string }) => name)).not.toContain('mistaken')
    expect(await axe()).toEqual([])
    await page.click('.score-table a', 'look it up')
    await page.shows('.step-scores', 'friendly')
    expect(await page.text('.step-scores')).toContain('Grace')
    expect(await page.text('.step-scores')).not.toContain('similarity')
  })

  test('a thumb on the run is given, commented, turned and taken back with the keyboard; it is one score', async () => {
    await page.go(`#/runs/${runId}`)
    await page.until(`${pressed('.run-head', 'Good run')} === 'false'`)
    await page.evaluate(`document.querySelector('.run-head .thumb').focus()`)
    await page.press(' ')
    await page.until(`${pressed('.run-head', 'Good run, 1')} === 'true'`)
    await page.click('.run-head .thumbs button', 'Add a comment')
    await page.fill('dialog textarea', 'Just right.')
    await page.click('dialog button[type=submit]')
    await page.shows('.run-head .thumbs', 'Edit the comment')
    const [thumb] = await stored()
    expect(thumb).toMatchObject({ name: 'feedback', value: true, comment: 'Just right.', source: 'person' })
    await page.click('.run-head .thumb[aria-label="Bad run"]')
    await page.until(`${pressed('.run-head', 'Bad run, 1')} === 'true'`)
    expect((await stored())[0]).toMatchObject({ id: thumb.id, value: false, comment: 'Just right.' })
    await page.click('.run-head .thumb[aria-label^="Bad run"]')
    await page.until(`${pressed('.run-head', 'Bad run')} === 'false' && !${pressed('.run-head', 'Bad run, 1')}`)
    expect((await stored())[0]).toMatchObject({ id: thumb.id, value: null, label: 'withdrawn', comment: null })
    await page.go(`#/runs/${runId}?tab=scores`)
    await page.shows('.score-table', 'taken back')
  })

  test('a thumb on an answer is about its model call; a second tab sees it at once', async () => {
    const other = await page.newTab(`${service.url}/#/runs/${runId}`)
    await other.shows('.message-foot', 'm-1')
    await page.send('Page.bringToFront')
    await page.go(`#/runs/${runId}`)
    await page.click('.message-foot .thumb[aria-label="Good answer"]')
    await page.until(`${pressed('.message-foot', 'Good answer, 1')} === 'true'`)
    await other.until(`document.querySelector('.message-foot .thumb[aria-label="Good answer, 1"]')`)
    await other.close()
    expect((await stored())[0]).toMatchObject({ name: 'feedback', value: true, event_id: 'call-1' })
    expect(await page.evaluate<boolean>(`${pressed('.run-head', 'Good run')} === 'false'`)).toBe(true)
  })

  test('scores are columns of the list of runs, as the average or the latest', async () => {
    await score({ run_id: otherId, name: 'similarity', value: 0.25 })
    await score({ run_id: otherId, name: 'similarity', value: 0.5 })
    await page.go('#/runs?cols=started')
    await page.click('summary[aria-label=Columns]')
    await page.shows('.score-menu', 'similarity')
    await page.choose('.score-menu select[aria-label="Column with the score similarity"]', 'Average')
    const cell = (id: string) => `document.querySelector('[data-run="${id}"] td:last-child')?.textContent`
    await page.until(`${cell(otherId)} === '0.375' && ${cell(runId)} === '0.8251'`)
    await page.choose('.score-menu select[aria-label="Column with the score similarity"]', 'Latest')
    await page.until(`${cell(otherId)} === '0.5'`)
    expect(await axe()).toEqual([])
  })

  test('the overview shows their averages over time, in the dark and on a narrow screen', async () => {
    const features = [{ name: 'prefers-color-scheme', value: 'dark' }]
    await page.send('Emulation.setEmulatedMedia', { features })
    await page.send('Emulation.setDeviceMetricsOverride', {
      width: 400,
      height: 800,
      deviceScaleFactor: 1,
      mobile: false,
    })
    await page.go('#/overview')
    await page.shows('.score-charts', 'Score: similarity')
    expect(await page.text('.score-charts')).toContain('0.525 on average of 3 scores')
    expect(await axe()).toEqual([])
    for (const hash of ['#/overview', `#/runs/${runId}`, `#/runs/${runId}?tab=scores`]) {
      await page.go(hash)
      await page.until(`document.querySelector('.score-charts, .run-head .thumbs')`)
      expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBeLessThanOrEqual(400)
    }
    expect(await axe()).toEqual([])
  })
})
