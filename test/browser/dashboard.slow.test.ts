import { beforeAll, describe, expect, test } from 'bun:test'
import { newAgent } from '../support/api.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { chromium, type DashboardPage, HOSTILE, openDashboard, SHOWN } from './dashboard-page.ts'

/** The dashboard in a real browser, with a real service and real clicks. */

const BIG = '9223372036854775807'

describe.skipIf(chromium === null)('the dashboard (needs a Chromium)', () => {
  let service: TestService
  let page: DashboardPage
  let runId: string
  let agentId: string
  let agentKey: string

  beforeAll(async () => {
    service = await startTestService()
    ;({ agentId, agentKey } = await newAgent(service.api, { name: HOSTILE }))
    runId = await startRun(`{"text": ${JSON.stringify(HOSTILE)}, "big": ${BIG}}`)
    await report('events', { run_id: runId, events: [{ type: HOSTILE, level: 'warn', payload: { text: HOSTILE } }] })
    const task = { id: crypto.randomUUID(), name: HOSTILE, status: 'failed', error_message: HOSTILE }
    await report('tasks', { run_id: runId, task })
    await report('run/fail', { run_id: runId, error_message: HOSTILE, error_detail: { text: HOSTILE } })
    page = await openDashboard(service.url)
  })

  test('reports a rejected key and does not keep it', async () => {
    for (const [key, message] of [
      [agentKey, 'needs a workspace key'],
      ['svc_ws_wrong', 'refuses this key'],
      ['sch\u00f6n', 'not a key'],
    ] as const) {
      await page.signIn(key)
      await page.shows('.prompt .field-problem', message)
      expect(await page.evaluate<number>('sessionStorage.length + localStorage.length')).toBe(0)
    }
  })

  test('a key opens the overview, and is kept for this session only', async () => {
    await page.signIn(service.workspaceKey)
    await page.shows('.failures', SHOWN)
    await page.shows('.tile', '1 failed')
    const kept = `[location.href, document.cookie, JSON.stringify(localStorage)].join()`
    expect(await page.evaluate<string>(kept)).not.toContain('svc_ws_')
    await page.evaluate('(window.isOld = true, location.reload())')
    await page.until(`!window.isOld && document.querySelector('.tile')`)
  })

  test('a link opened in a new tab shows the same, without a key typed, also if the open tab is too busy to answer', async () => {
    // Longer than a new tab waits for an answer before it shows the prompt.
    await page.evaluate('void setTimeout(() => { for (const end = Date.now() + 700; Date.now() < end; ); })')
    const other = await page.newTab(`${service.url}/#/runs?status=failed`)
    await other.until(`document.querySelector('.run-list tbody tr')`)
    expect(await other.text('.statuses summary')).toBe('failed')
    await other.close()
    await page.send('Page.bringToFront')
  })

  test('a run shows its steps and events, and text of agents is never parsed as HTML', async () => {
    await page.go(`#/runs/${runId}?tab=events`)
    await page.until(
      `document.querySelector('.span-row.kind-task') && document.querySelector('.event-row .preview')?.textContent`,
    )
    await page.click('.event-row')
    await page.shows('.event-detail pre', '<img src=x')
    // Agent (above and in the tree), error, step, the event's row (type and preview), its detail (type and payload).
    const shown = await page.text('main')
    expect(shown.split('<img src=x onerror=').length - 1).toBe(8)
    await page.click('.tabs button', 'Details')
    await page.shows('.run-data', `"big": ${BIG}`)
    await page.click('.span-row.kind-task')
    await page.shows('.step .problem', '<img src=x')
    expect(await page.count('img, body script')).toBe(0)
    expect(await page.evaluate<unknown>('window.pwned ?? null')).toBeNull()
  })

  test('Escape closes the step, then leads back to the list; j, k and Enter move through it', async () => {
    await page.press('Escape')
    await page.until(`!location.hash.includes('step=')`)
    await page.press('Escape')
    await page.until(`location.hash.startsWith('#/runs') && document.querySelector('.run-list')`)
    await startRun('{}')
    await page.shows('.new-runs', '1 new run')
    expect(await page.count('.run-list tbody tr')).toBe(1)
    await page.click('.new-runs button')
    await page.until(`document.querySelectorAll('.run-list tbody tr').length === 2`)
    await page.press('j')
    await page.press('j')
    await page.press('k')
    const focused = `document.activeElement.closest('tr')`
    expect(await page.evaluate<number>(`[...${focused}.parentNode.children].indexOf(${focused})`)).toBe(0)
    await page.press('j')
    await page.press('Enter')
    await page.until(`location.hash === '#/runs/${runId}'`)
  })

  test('free text finds a run by a part of its id, also from a link', async () => {
    await page.go(`#/runs?q=${runId.slice(-8)}`)
    await page.until(`document.querySelectorAll('.run-list tr[data-run]').length === 1`)
    await page.fill('.search input', 'nowhere to be found')
    await page.shows('.empty', 'No run matches')
    expect(await page.evaluate<string>('location.hash')).toContain('nowhere')
  })

  test('the list is filtered by exact values that are typed; an id that is none is pointed out and selects nothing', async () => {
    const { run_id: child } = await report('run/start', { agent_id: agentId, parent_run_id: runId })
    await page.go('#/runs')
    await page.click('summary[aria-label="More filters"]')
    await page.fill('.menu-body input[name=parent]', 'no id')
    await page.shows('.field-problem', 'Not an id')
    expect(await page.count('.chip')).toBe(0)
    await page.fill('.menu-body input[name=parent]', runId)
    await page.shows('.chip', 'Parent run: …')
    await page.until(`document.querySelectorAll('.run-list tbody tr').length === 1`)
    expect(await page.evaluate<string>(`document.querySelector('.run-list tbody tr').dataset.run`)).toBe(child)
    await page.press('Escape')
    await page.click('button', 'Clear')
    await page.until(`document.querySelectorAll('.run-list tbody tr').length > 1`)
    expect(await page.evaluate<string>(`document.querySelector('.menu-body input[name=parent]').value`)).toBe('')
  })

  test('the live view shows filtered events as they happen, as text, and a pause loses nothing', async () => {
    await page.go('#/live')
    await page.shows('.tail-state', 'Live ·')
    const live = await startRun('{}')
    await report('events', { run_id: live, events: [{ type: HOSTILE, level: 'error', payload: { big: 1 } }] })
    await page.shows('.tail-row.error .event-type', SHOWN)
    expect(await page.evaluate<string>(`document.querySelector('.tail-row a').hash`)).toBe(`#/runs/${live}`)
    await page.click('button', 'Pause')
    await report('events', { run_id: live, events: [{ type: 'while.paused' }] })
    await page.click('button', 'Resume')
    await page.shows('.tail-row .event-type', 'while.paused')
    await page.choose('select[aria-label=Show]', 'Failed runs')
    await page.until(`document.querySelectorAll('.tail-row').length === 0`)
    await report('events', { run_id: live, events: [{ type: 'left.out' }] })
    await report('run/fail', { run_id: live, error_message: 'it broke' })
    await page.shows('.tail-row', 'it broke')
    expect(await page.count('.tail-row')).toBe(1)
    // The browser tells a list that it was scrolled also when it has gone.
    await page.evaluate(`void (globalThis.gone = document.querySelector('.tail-rows'))`)
    await page.go('#/keys')
    await page.until(`!gone.isConnected`)
    await page.evaluate(`void gone.dispatchEvent(new Event('scroll'))`)
  })

  test('messages of nothing but marks, and a view that fails, leave the page usable', async () => {
    const messages = ['>'.repeat(59_000), '1. '.repeat(20_000)].map((content) => ({ role: 'user', content }))
    const live = await startRun('{}')
    await report('events', { run_id: live, events: [{ type: 'llm.call', payload: { messages } }] })
    await page.go(`#/runs/${live}?tab=conversation`)
    await page.until(`document.querySelectorAll('.message').length === 2`)
    await page.evaluate(`void (globalThis.Observer = ResizeObserver, ResizeObserver = () => { throw Error('broken') })`)
    await page.go('#/live')
    await page.shows('main [role=alert]', 'not a constructor')
    await page.evaluate('void (ResizeObserver = Observer)')
    await page.click('main button', 'Try again')
    await page.until(`document.querySelector('.tail-rows')`)
  })

  test('a query in the address is run, Ctrl+Enter runs it again, and errors are shown', async () => {
    const query = `SELECT toUInt64(${BIG}) AS n, '${HOSTILE.replaceAll("'", "''")}' AS t`
    await page.go(`#/sql?${new URLSearchParams({ q: query })}`)
    await page.until(`document.querySelector('.result-rows [role=cell]')`)
    const cells = `[...document.querySelectorAll('.result-rows [role=cell]')].map((cell) => cell.textContent)`
    expect(await page.evaluate<string[]>(cells)).toEqual([BIG, SHOWN])
    await page.until(`document.querySelector('.editor[data-ready]')?.shadowRoot.querySelector('.cm-content')`)
    await page.evaluate(`document.querySelector('.editor').shadowRoot.querySelector('.cm-content').focus()`)
    await page.press('End', 2)
    await page.send('Input.insertText', { text: ' FROM nothing' })
    await page.press('Enter', 2)
    await page.shows('.sql-editor .problem', 'nothing')
    await page.until(`location.hash.includes('nothing')`)
  })

  test('the editor keeps what is typed right after it was emptied', async () => {
    const typed = 'SELECT 1 AS one'
    await page.evaluate(`document.querySelector('.editor').shadowRoot.querySelector('.cm-content').focus()`)
    // At once, as a paste or an input method does: no view is drawn in between.
    const key = { type: 'keyDown', key: 'Backspace', code: 'Backspace', windowsVirtualKeyCode: 8 }
    const selectAll = { type: 'keyDown', key: 'a', code: 'KeyA', windowsVirtualKeyCode: 65, modifiers: 2 }
    await Promise.all([
      page.send('Input.dispatchKeyEvent', { ...selectAll, commands: ['selectAll'] }),
      page.send('Input.dispatchKeyEvent', key),
      ...[...typed].map((text) => page.send('Input.insertText', { text })),
    ])
    await page.until(`new URLSearchParams(location.hash.split('?')[1]).get('q') === ${JSON.stringify(typed)}`)
    const content = `document.querySelector('.editor').shadowRoot.querySelector('.cm-content').textContent`
    expect(await page.evaluate<string>(content)).toBe(typed)
  })

  test('in the editor Enter is a line break and Tab takes an offer; its blank part takes clicks', async () => {
    const editor = `document.querySelector('.editor').shadowRoot`
    const lines = () =>
      page.evaluate<string[]>(`[...${editor}.querySelectorAll('.cm-line')].map((line) => line.textContent)`)
    const replaceBy = async (text: string) => {
      const selectAll = { type: 'keyDown', key: 'a', code: 'KeyA', windowsVirtualKeyCode: 65, modifiers: 2 }
      await page.send('Input.dispatchKeyEvent', { ...selectAll, commands: ['selectAll'] })
      await page.press('Backspace')
      for (const each of text) await page.send('Input.insertText', { text: each })
    }
    const offers = (name: string) =>
      page.until(
        `[...${editor}.querySelectorAll('.cm-completionLabel')].some((each) => each.textContent === '${name}')`,
      )
    await page.evaluate(`${editor}.querySelector('.cm-content').focus()`)
    for (const line of ['SELECT count() AS n', 'SELECT 1 AS day', 'ORDER BY hour', 'FROM runs', 'SELECT coun']) {
      await replaceBy(line)
      if (!/ AS | BY /.test(line)) await page.until(`${editor}.querySelector('.cm-tooltip-autocomplete')`)
      await page.press('Enter')
      expect(await lines()).toEqual([line, ''])
    }
    await replaceBy('SELECT toStartOfH')
    await offers('toStartOfHour')
    // The editor takes no offer for 75 ms after the list has changed.
    await Bun.sleep(500)
    await page.press('Tab')
    expect(await lines()).toEqual(['SELECT toStartOfHour'])
    await replaceBy('SELECT 1 AS hourly GROUP BY hou')
    await offers('hourly')
    await page.press('Escape')
    await replaceBy('SELECT 1')
    const at = `(({ left, bottom }) => ({ x: left + 120, y: bottom - 12 }))(document.querySelector('.editor').getBoundingClientRect())`
    const click = { ...(await page.evaluate<object>(at)), button: 'left', clickCount: 1 }
    await page.evaluate(`void ${editor}.querySelector('.cm-content').blur()`)
    for (const type of ['mousePressed', 'mouseReleased'])
      await page.send('Input.dispatchMouseEvent', { type, ...click })
    for (const text of '+2') await page.send('Input.insertText', { text })
    expect(await lines()).toEqual(['SELECT 1+2'])
  })

  test('a dialog begins at its field, so that a name that is typed is kept', async () => {
    await page.click('.view-tools button', 'Save')
    await page.until(`document.activeElement.matches('dialog form input')`)
    await page.send('Input.insertText', { text: 'three' })
    await page.press('Enter')
    await page.until(`!document.querySelector('dialog') && location.hash.includes('saved=')`)
  })

  test('the chart of a query has a line for each value of a column, where several rows have the same time', async () => {
    const rows = `[(0, 'some', 1), (0, 'most', 9), (9, 'most', 8), (9, 'some', 2)]`
    const query = `SELECT toDateTime(row.1) AS at, row.2 AS kind, row.3 AS n FROM (SELECT arrayJoin(${rows}) AS row)`
    await page.go('#/keys')
    await page.until(`document.querySelector('.keys')`)
    await page.go(`#/sql?${new URLSearchParams({ q: query })}`)
    await page.shows('.result-head', '4 rows')
    await page.click('.result button', 'Chart')
    await page.shows('.result .chart-key', 'most')
    const keys = `[...document.querySelectorAll('.result .chart-key')].map((key) => key.textContent.trim())`
    expect(await page.evaluate<string[]>(keys)).toEqual(['most', 'some'])
    await page.click('.result button', 'Table')
  })

  test('an example query runs with its parameters as fields', async () => {
    const last = `[...document.querySelector('select[aria-label=Examples]').options].at(-1).textContent`
    await page.choose('select[aria-label=Examples]', await page.evaluate<string>(last))
    await page.until(`document.querySelector('.placeholders input[name=hours]')?.value === '48'`)
    await page.until(`document.querySelector('.sql-editor .primary').textContent === 'Run'`)
    expect(await page.text('.sql-editor .problem')).toBe('')
    for (const each of ['events', 'gen_ai.usage.input_tokens', 'duration_ms', 'task_id'])
      expect(await page.text('.tables-help')).toContain(each)
  })

  test('Back undoes a zoom, and so does a button; the latest failures and their link keep the range', async () => {
    const day = 86_400_000
    await page.go('#/overview?range=24h')
    await page.shows('.failures .row-title', 'it broke')
    const drag = `(({ left, top, width }) => ({ left, top, width }))(document.querySelector('.u-over').getBoundingClientRect())`
    const zoom = async () => {
      await page.until(`document.querySelector('.u-over')?.clientWidth > 0`)
      const { left, top, width } = await page.evaluate<{ left: number; top: number; width: number }>(drag)
      const at = (share: number) => ({ x: left + width * share, y: top + 20, button: 'left', clickCount: 1 })
      await page.send('Input.dispatchMouseEvent', { type: 'mouseMoved', ...at(0.2) })
      await page.send('Input.dispatchMouseEvent', { type: 'mousePressed', ...at(0.2) })
      await page.send('Input.dispatchMouseEvent', { type: 'mouseMoved', ...at(0.5), buttons: 1 })
      await page.send('Input.dispatchMouseEvent', { type: 'mouseReleased', ...at(0.5) })
      await page.until(`location.hash.includes('from=')`)
    }
    await zoom()
    await page.shows('.failures', 'No run of this range has failed')
    const link = new URLSearchParams(
      (await page.evaluate<string>(`document.querySelector('.failures a').hash`)).split('?')[1],
    )
    expect(Date.parse(link.get('from') ?? '')).toBeLessThan(Date.now() - day / 4)
    await page.evaluate('history.back()')
    await page.until(`location.hash === '#/overview?range=24h'`)
    await page.shows('.failures .row-title', 'it broke')
    await zoom()
    await page.click('button', 'Reset to last 24 hours')
    await page.until(`location.hash === '#/overview?range=24h'`)
  })

  test('a range up to now shows new runs by itself', async () => {
    const runs = `Number(document.querySelector('.tile-value')?.textContent)`
    await page.go('#/overview?range=1h')
    await page.until(`${runs} > 0`)
    const before = await page.evaluate<number>(runs)
    await startRun('{}')
    await page.until(`${runs} > ${before}`)
  })

  test('requests nothing from other hosts, never sends the key in a URL, shows all text in its direction, and logs no errors', async () => {
    expect(page.requests.filter((url) => !url.startsWith(`${service.url}/`))).toEqual([])
    expect(page.requests.filter((url) => url.includes('svc_ws_'))).toEqual([])
    // A query that was given up may still count when the next one begins; the page repeats that one after a 429.
    const complaints = page
      .complaintsBeside('(40[01]|429)')
      .filter((complaint) => !complaint.includes('not a constructor'))
    expect(complaints).toEqual([])
    expect(await page.reversed()).toEqual([])
  })

  test('a revoked key signs the page out at once, and is removed', async () => {
    const { data } = await service.api('GET', '/api/v1/keys?type=workspace')
    await service.api('POST', `/api/v1/keys/${data.items[0].key_id}/revoke`, {})
    await page.shows('.prompt .field-problem', 'no longer accepts this key')
    expect(await page.evaluate<unknown>(`sessionStorage.getItem('workspace-key')`)).toBeNull()
  })

  async function startRun(input: string): Promise<string> {
    const body = `{"agent_id": "${agentId}", "input": ${input}}`
    return (await report('run/start', body)).run_id
  }

  async function report(path: string, body: unknown) {
    const { data, error } = await service.api('POST', `/api/ingest/v1/${path}`, body, { key: agentKey })
    expect(error).toBeNull()
    return data
  }
})
