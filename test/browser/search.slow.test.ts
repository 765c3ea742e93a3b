import { expect, test } from 'bun:test'
import { newReporter } from '../support/feeds.ts'
import { startTestService } from '../support/service.ts'
import { chromium, openDashboard } from './dashboard-page.ts'

test.skipIf(chromium === null)(
  'a search shows where runs have the words, and leads there (needs a Chromium)',
  async () => {
    const service = await startTestService()
    const reporter = await newReporter(service.api)
    const run = await reporter.start({ input: { message: 'Where is my parcel?' } })
    const other = await reporter.start({ input: { message: 'The parcel service did not apologize' } })
    await reporter.events(run, [
      { type: 'note', payload: { text: 'before' } },
      { type: 'llm.call', payload: { text: 'We <b>Apologize</b> for the delay of your\nparcel, order 4711.' } },
    ])
    const page = await openDashboard(service.url)
    await page.signIn(service.workspaceKey)
    await page.go('#/runs')
    await page.until(`document.querySelectorAll('tr[data-run]').length === 2`)
    await page.press('/')
    await page.fill('.search input', 'apologize "order 4711"')
    await page.shows('.found', 'order 4711')
    await page.shows('.search-note', 'Searched ids, tags, agents, errors, inputs, outputs, tasks and events.')
    expect(await page.count('tr[data-run]')).toBe(1)
    const marks = `[...document.querySelectorAll('.found mark')].map((each) => each.textContent)`
    expect(await page.evaluate<string[]>(marks)).toEqual(['Apologize', 'order 4711'])
    await page.fill('.search input', 'apologize')
    await page.until(`document.querySelector('[data-run="${other}"] + .found mark')?.textContent === 'apologize'`)
    await page.click(`[data-run="${run}"] + .found a`)
    await page.until(`location.hash.startsWith('#/runs/${run}?') && document.body.innerText.includes('Apologize')`)
    expect(await page.reversed()).toEqual([])
    expect(page.complaintsBeside('')).toEqual([])
  },
)
