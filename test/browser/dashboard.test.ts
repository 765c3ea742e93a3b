import { beforeAll, describe, expect, test } from 'bun:test'
import { newAgent } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { type BrowserPage, findChromium, launch } from './chromium.ts'

/** The dashboard in a real browser, with a real service and real clicks. */

const chromium = findChromium()
const HOSTILE = `<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>`
const BIG = '9223372036854775807'

describe.skipIf(chromium === null)('the dashboard (needs a Chromium on this machine)', () => {
  let service: TestService
  let page: BrowserPage
  let runId: string
  let agentId: string
  let agentKey: string

  beforeAll(async () => {
    ;[service, page] = await Promise.all([startTestService(), launch(chromium as string)])
    ;({ agentId, agentKey } = await newAgent(service.api, { name: HOSTILE }))
    runId = await startRun(`{"text": ${JSON.stringify(HOSTILE)}, "big": ${BIG}}`)
    await report('events', { run_id: runId, events: [{ type: HOSTILE, level: 'warn', payload: { text: HOSTILE } }] })
    const task = { id: crypto.randomUUID(), name: HOSTILE, status: 'failed', error_message: HOSTILE }
    await report('tasks', { run_id: runId, task })
    await report('run/fail', { run_id: runId, error_message: HOSTILE, error_detail: { text: HOSTILE } })
    await page.open(service.url)
  })

  test('reports a rejected key and does not store it', async () => {
    for (const [key, message] of [
      [agentKey, 'needs a workspace key'],
      ['svc_ws_wrong', 'refuses this key'],
      ['sch\u00f6n', 'not a key'],
    ] as const) {
      await enterKey(key)
      await until(`document.querySelector('#key-problem').textContent.includes(${JSON.stringify(message)})`)
      expect(await page.evaluate<number>('sessionStorage.length')).toBe(0)
    }
  })

  test('a key opens the dashboard, and is kept in this tab only', async () => {
    await enterKey(service.workspaceKey)
    await until(`document.querySelector('.run-list tbody tr')`)
    const kept = `[location.href, document.cookie, JSON.stringify(localStorage)].join()`
    expect(await page.evaluate<string>(kept)).not.toContain('svc_ws_')
    await page.evaluate('(window.isOld = true, location.reload())')
    await until(`!window.isOld && document.querySelector('.run-list tbody tr')`)
  })

  test('a run shows its tasks and events, and text of agents is never parsed as HTML', async () => {
    await click('.run-list a')
    await until(`document.querySelector('.events li') && document.querySelector('.tasks li')`)
    await click('.events summary')
    await click('.tasks summary')
    await until(`document.querySelector('.events section pre')`)
    const shown = await page.evaluate<string>(`document.querySelector('.detail').textContent`)
    // Agent, error, its detail, input, the task and its error, the event's type, preview and payload.
    expect(shown.split('<img src=x onerror=').length - 1).toBe(9)
    expect(await page.evaluate<number>(`document.querySelectorAll('img, body script').length`)).toBe(0)
    expect(await page.evaluate<unknown>('window.pwned ?? null')).toBeNull()
  })

  test('shows a 64-bit integer with all its digits', async () => {
    expect(await page.evaluate<string>(`document.querySelector('.detail').textContent`)).toContain(`"big": ${BIG}`)
  })

  test('a refresh adds new runs and keeps focus and elements', async () => {
    const row = `document.querySelector('.run-list a[href="#/runs/${runId}"]')`
    await page.evaluate(`void ((window.before = ${row}), window.before.focus())`)
    const added = await startRun('{}')
    await until(`document.querySelector('.run-list a[href="#/runs/${added}"]')`)
    expect(await page.evaluate<boolean>(`document.activeElement === window.before && ${row} === window.before`)).toBe(
      true,
    )
    expect(await page.evaluate<string>(`document.querySelector('.run-list [aria-current]').hash`)).toBe(
      `#/runs/${runId}`,
    )
  })

  test('the live view shows filtered events as they happen, as text', async () => {
    await page.evaluate(`void (location.hash = '#/live')`)
    await until(`document.querySelector('[aria-label=Live] [role=status]').textContent.startsWith('Live')`)
    const live = await startRun('{}')
    await report('events', { run_id: live, events: [{ type: HOSTILE, level: 'error', payload: { big: 1 } }] })
    await until(
      `document.querySelector('.ticker li .level.error')?.nextSibling.textContent === ${JSON.stringify(HOSTILE)}`,
    )
    expect(await page.evaluate<string>(`document.querySelector('.ticker li a').hash`)).toBe(`#/runs/${live}`)
    await page.evaluate(
      `void ((choice) => (choice.value = 'Failed runs', choice.dispatchEvent(new Event('change'))))(document.querySelector('[aria-label=Live] select'))`,
    )
    await report('events', { run_id: live, events: [{ type: 'left.out' }] })
    await report('run/fail', { run_id: live, error_message: 'it broke' })
    await until(`document.querySelector('.ticker').textContent.includes('it broke')`)
    expect(await page.evaluate<number>(`document.querySelectorAll('.ticker li').length`)).toBe(1)
  })

  test('Ctrl+Enter runs the SQL, and errors are shown', async () => {
    await page.evaluate(`location.hash = '#/sql'`)
    await until(`!document.querySelector('.sql').hidden`)
    await query(`SELECT toUInt64(${BIG}) AS n, '${HOSTILE.replaceAll("'", "''")}' AS t`)
    await until(`document.querySelector('.result td')`)
    const cells = `[...document.querySelectorAll('.result td')].map((cell) => cell.textContent)`
    expect(await page.evaluate<string[]>(cells)).toEqual([BIG, HOSTILE])
    await query('SELECT nothing FROM runs')
    await until(`document.querySelector('.sql .problem').textContent.includes('nothing')`)
  })

  test('every example query works, with its parameters', async () => {
    const menu = `document.querySelector('.sql select')`
    const titles = await page.evaluate<string[]>(`[...${menu}.options].map((each) => each.textContent)`)
    expect(titles.length).toBeGreaterThan(12)
    // The first entry is the menu's label.
    for (const index of [...titles.keys()].slice(1)) {
      await page.evaluate(`(${menu}.selectedIndex = ${index}, ${menu}.dispatchEvent(new Event('change')))`)
      await until(`!document.querySelector('.sql .primary').disabled`)
      expect(await page.evaluate<string>(`document.querySelector('.sql .problem').textContent`)).toBe('')
    }
    expect(await page.evaluate<string>(`document.querySelector('.sql .actions input').value`)).toBe('{"hours":48}')
  })

  test('shows the columns of the tables', async () => {
    const shown = await page.evaluate<string>(`document.querySelector('.sql details').textContent`)
    for (const each of ['events', 'gen_ai.usage.input_tokens', 'duration_ms', 'task_id']) expect(shown).toContain(each)
  })

  test('requests nothing from other hosts, and logs no errors', () => {
    expect(page.requests.filter((url) => !url.startsWith(`${service.url}/`))).toEqual([])
    // A browser logs each response of status 400 and above; these are expected.
    expect(page.complaints.filter((complaint) => !/status of 40[01]/.test(complaint))).toEqual([])
  })

  test('a revoked key leads back to the prompt, and is removed', async () => {
    const { data } = await service.api('GET', '/api/v1/keys?type=workspace')
    await service.api('POST', `/api/v1/keys/${data.items[0].key_id}/revoke`, {})
    await page.evaluate(`location.hash = '#/runs'`)
    await until(`document.querySelector('#key-problem')?.textContent.includes('no longer accepts this key')`)
    expect(await page.evaluate<number>('sessionStorage.length')).toBe(0)
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

  async function enterKey(key: string): Promise<void> {
    await page.evaluate(`(document.querySelector('#key').value = '', document.querySelector('#key').focus())`)
    await page.send('Input.insertText', { text: key })
    await click('button[type=submit]')
  }

  async function query(sql: string): Promise<void> {
    await page.evaluate(
      `(document.querySelector('#sql').value = ${JSON.stringify(sql)}, document.querySelector('#sql').focus())`,
    )
    const key = { key: 'Enter', code: 'Enter', windowsVirtualKeyCode: 13, modifiers: 2 }
    for (const type of ['keyDown', 'keyUp']) await page.send('Input.dispatchKeyEvent', { type, ...key })
  }

  function click(selector: string): Promise<void> {
    return page.evaluate(`document.querySelector(${JSON.stringify(selector)}).click()`)
  }

  function until(condition: string): Promise<unknown> {
    const check = () => page.evaluate<boolean>(`Boolean(${condition})`).catch(() => false)
    return eventually(check, { intervalMs: 30 })
  }
})
