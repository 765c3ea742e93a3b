import { beforeAll, describe, expect, test } from 'bun:test'
import { newReporter, type Reporter } from '../support/feeds.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { chromium, type DashboardPage, openDashboard } from './dashboard-page.ts'

/** The page of one run in a real browser: what it got and gave, and the tree of its steps. */

const [OUTER, INNER, NOTED] = [crypto.randomUUID(), crypto.randomUUID(), crypto.randomUUID()]
const IMAGE = Buffer.from(Uint8Array.from({ length: 9_000 }, (_, index) => (index * 37) % 251)).toString('base64')
const ASKED = { role: 'user', content: [{ type: 'text', text: 'Which **shape**?' }] }
const PICTURE = { type: 'image_url', image_url: { url: `data:image/png;base64,${IMAGE}` } }
const CALLED = { id: 'call-1', type: 'function', function: { name: 'look', arguments: '{"at":"picture"}' } }
const USAGE = { prompt_tokens: 900, prompt_tokens_details: { cached_tokens: 700 }, completion_tokens: 40 }

describe.skipIf(chromium === null)('the page of a run (needs a Chromium)', () => {
  let service: TestService
  let reporter: Reporter
  let page: DashboardPage
  let runId: string

  beforeAll(async () => {
    service = await startTestService()
    reporter = await newReporter(service.api)
    runId = await reporter.start({ input: { message: 'Which **shape**?' } })
    for (const task of [
      { id: OUTER, name: 'outer' },
      { id: INNER, name: 'inner', parent_task_id: OUTER, status: 'failed', error_message: 'inner broke' },
    ])
      await reporter.task(runId, { status: 'completed', ...task })
    const first = { model: 'm-1', messages: [{ ...ASKED, content: [...ASKED.content, PICTURE] }] }
    const answer = { role: 'assistant', content: null, tool_calls: [CALLED] }
    const second = [...first.messages, answer, { role: 'tool', tool_call_id: 'call-1', content: '{"corners":4}' }]
    const usage = { usage: USAGE, 'gen_ai.usage.input_tokens': 900, 'gen_ai.usage.output_tokens': 40 }
    await reporter.events(runId, [
      { type: 'llm.call', task_id: INNER, payload: { ...first, choices: [{ message: answer }], ...usage } },
      { type: 'tool.call.finished', task_id: INNER, payload: { tool: 'look', output: { corners: 4 } } },
      { type: 'llm.call', payload: { model: 'm-1', messages: second, response: 'A *square*.', ...usage } },
      { type: 'noted', id: NOTED, payload: { message: 'by the way' } },
    ])
    page = await openDashboard(service.url)
    await page.signIn(service.workspaceKey)
    await page.shows('.waiting-now', 'Nothing waits')
  })

  test('it opens on the conversation, with folded calls, tokens of each answer, and no bytes', async () => {
    await page.go(`#/runs/${runId}`)
    await page.shows('.message.assistant em', 'square')
    expect(await page.count('.message')).toBe(3)
    expect(await page.text('.message.user')).toContain('Which shape?image, image/png, 9 kB')
    expect(await page.text('.message-foot')).toContain('m-1 · 900 in (700 cached), 40 out')
    expect(await page.text('.tool-call')).toBe('lookat: picture')
    await page.click('.tool-call summary')
    await page.shows('.tool-call pre', '"corners": 4')
    expect(await page.text('main')).not.toContain(IMAGE.slice(0, 40))
    // The input is the first message.
    expect(await page.count('.run-content h2')).toBe(0)
  })

  test('steps nest, fold and are opened by keys; a failure is marked above what is folded, and found by its button', async () => {
    const rows = () => page.evaluate<string[]>(`[...document.querySelectorAll('.span-text')].map((each) => each.title)`)
    const all = await rows()
    expect(all.slice(1).toSorted()).toEqual(['inner', 'look', 'm-1', 'm-1', 'outer'])
    await page.click('.failed-steps')
    await page.shows('.step .problem', 'inner broke')
    await page.evaluate(`document.querySelector('[role=tree]').focus()`)
    await page.press('ArrowLeft')
    await page.until(`document.querySelector('#step-${INNER}').getAttribute('aria-expanded') === 'false'`)
    await page.press('ArrowLeft')
    await page.until(`document.querySelector('[role=tree]').getAttribute('aria-activedescendant') === 'step-${OUTER}'`)
    await page.press('ArrowLeft')
    await page.until(
      `document.querySelector('#step-${OUTER} .span-failed') && !document.querySelector('#step-${INNER}')`,
    )
    expect((await rows()).toSorted()).toEqual([all[0] as string, 'm-1', 'outer'].toSorted())
    await page.press('Enter')
    await page.shows('.step h2', 'outer')
    // It grows, and what is selected and folded stays so.
    await reporter.events(runId, [{ type: 'tool.call.started', payload: { tool: 'later', tool_call_id: 'call-2' } }])
    await page.shows('.span-text', 'later')
    expect(await page.text('.step h2')).toBe('outer')
    expect(await page.count(`#step-${INNER}`)).toBe(0)
  })

  test('a link to a task, or to an event by its id, shows the step or else the event', async () => {
    await page.go(`#/runs/${runId}?task=${INNER}`)
    await page.shows('.step h2', 'inner')
    await page.until(`document.querySelector('#step-${INNER}[aria-selected=true]')`)
    const { data } = await service.api('GET', `/api/v1/runs/${runId}/events?type=tool.call.finished`)
    await page.go('#/keys')
    await page.go(`#/runs/${runId}?event=${data.items[0].id}`)
    await page.shows('.step h2', 'look')
    await page.go('#/keys')
    await page.go(`#/runs/${runId}?event=${NOTED}`)
    await page.shows('.event-detail pre', 'by the way')
    await page.until(`document.querySelector('.event-row[aria-pressed=true]')`)
  })

  test('a long error folds, and a narrow screen shows one pane at a time', async () => {
    const frames = Array.from({ length: 60 }, (_, line) => `    at step${line} (agent.ts:${line})`)
    await reporter.end(runId, `it broke\n${frames.join('\n')}`)
    await page.go(`#/runs/${runId}`)
    await page.shows('.run-error', 'it broke')
    expect(await page.text('.run-error')).not.toContain('step30')
    await page.click('.run-error button')
    await page.shows('.run-error', 'step59')
    await page.send('Emulation.setDeviceMetricsOverride', {
      width: 400,
      height: 800,
      deviceScaleFactor: 1,
      mobile: false,
    })
    const isShown = (selector: string) => `document.querySelector('${selector}')?.offsetParent`
    await page.until(`${isShown('.run-side')} && !${isShown('.waterfall')}`)
    await page.click('.run-switch button:last-child')
    await page.until(`${isShown('.waterfall')} && !${isShown('.run-side')}`)
    await page.click('.span-row.kind-tool')
    await page.until(`${isShown('.step')} && !${isShown('.waterfall')}`)
    await page.send('Emulation.clearDeviceMetricsOverride')
    expect(page.complaints).toEqual([])
  })

  test('an ended run is deleted after a question, and the list follows', async () => {
    const [kept, gone] = [await reporter.start(), await reporter.start()]
    await reporter.end(gone)
    await page.go(`#/runs/${kept}`)
    await page.shows('.run-head', 'running')
    expect(await page.text('.head-actions')).not.toContain('Delete')
    await page.go(`#/runs/${gone}`)
    await page.shows('.run-head', 'completed')
    await page.click('.head-actions button', 'Delete')
    await page.click('dialog button', 'Delete the run')
    await page.until(`location.hash.startsWith('#/runs') && !location.hash.includes('${gone}')`)
    expect((await service.api('GET', `/api/v1/runs/${gone}`)).status).toBe(404)
    expect(page.complaints).toEqual([])
  })
})
