import { beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '../support/eventually.ts'
import { untilStatus } from '../support/hosted.ts'
import { callTurn, type HostedRig, type ScriptedAgent, startHostedRig } from '../support/hosted-rig.ts'
import { type BrowserPage, findChromium, launch } from './chromium.ts'

/** People decide on pauses of hosted runs in the dashboard, and invoke agents there: real services, a real browser. */

const chromium = findChromium()
const HOSTILE = `<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>`
const QUESTION = { question: `Which\ncolour? ${HOSTILE}`, options: ['red', HOSTILE] }

describe.skipIf(chromium === null)('hosted agents in the dashboard (needs a Chromium on this machine)', () => {
  let rig: HostedRig
  let page: BrowserPage
  let payer: ScriptedAgent
  let speaker: ScriptedAgent
  let parent: ScriptedAgent

  beforeAll(async () => {
    ;[rig, page] = await Promise.all([startHostedRig(), launch(chromium as string)])
    payer = await rig.agent(rig.service, [callTurn(['pay', { n: 7, to: `${HOSTILE}\u202e` }]), { text: 'paid' }], {
      name: HOSTILE,
      tools: [rig.tools.tool('pay', { requires_approval: true })],
    })
    speaker = await rig.agent(
      rig.service,
      [{ text: `One moment. ${HOSTILE}`, ...callTurn(['pay', { n: 1 }]) }, { text: 'All is paid.' }],
      { name: 'speaker', prompt: 'Help {{WHO}}.', tools: [rig.tools.tool('pay', { requires_approval: true })] },
    )
    const child = await rig.agent(rig.service, [callTurn(['request_input', QUESTION]), { text: 'asked' }], {
      name: 'child',
      allow_input_requests: true,
    })
    const tool = { type: 'agent', name: 'ask', description: 'asks', agent_id: child.agentId }
    parent = await rig.agent(rig.service, [callTurn(['ask', { message: 'go' }]), { text: 'done' }], {
      name: 'parent',
      tools: [tool],
    })
    await page.open(rig.service.url)
    await page.evaluate(`document.querySelector('#key').value = ${JSON.stringify(rig.service.workspaceKey)}`)
    await page.evaluate(`document.querySelector('button[type=submit]').click()`)
    await until(`document.querySelector('[aria-label=Live] [role=status]')?.textContent.startsWith('Live')`)
  })

  test('a new approval is counted on the tab, and its run links to the exact arguments, as text', async () => {
    expect(await page.evaluate<boolean>(`document.querySelector('.badge').hidden`)).toBe(true)
    const { runId, id } = await paused()
    await until(`!document.querySelector('.badge').hidden && document.querySelector('.badge').textContent === '1'`)
    await go(`#/runs/${runId}`)
    await until(`document.querySelector('.detail .waits').textContent.includes('an approval to call pay')`)
    await page.evaluate(`document.querySelector('.detail .waits a').click()`)
    await until(`document.activeElement.closest('.pauses li')`)
    expect(await page.evaluate<string>('location.hash')).toBe(`#/waiting/approvals/${id}`)
    const shown = await page.evaluate<string>(`document.querySelector('.pauses pre').textContent`)
    expect(shown).toBe(JSON.stringify({ n: 7, to: `${HOSTILE}\u202e` }, null, 2).replace('\u202e', '\\u202e'))
    expect(await page.evaluate<string>(`document.querySelector('.pauses h2').textContent`)).toBe(HOSTILE)
  })

  test('approves a call with edited arguments once they are valid JSON, and shows the decision', async () => {
    const before = rig.tools.calls.length
    await press('Edit the arguments')
    await type('textarea', '{"n": 5')
    const approve = `[...document.querySelectorAll('.pauses .primary')].at(-1)`
    expect(await page.evaluate<boolean>(`${approve}.disabled`)).toBe(true)
    expect(await page.evaluate<string>(`document.querySelector('.pauses div .problem').textContent`)).toContain('JSON')
    await type('textarea', '{"n": 5}')
    await type('[placeholder]', HOSTILE)
    await press('Approve with these arguments')
    await until(`document.querySelector('.verdict').textContent.startsWith('Approved just now')`)
    const card = await page.evaluate<string>(`document.querySelector('.pauses li').textContent`)
    expect(card).toContain(`: ${HOSTILE}`)
    expect(card).toContain('{\n  "n": 5\n}')
    expect(await page.evaluate<boolean>(`document.querySelector('.pauses fieldset').hidden`)).toBe(true)
    await eventually(() => rig.tools.calls.length > before)
    expect(rig.tools.calls.slice(before).map(({ input }) => input)).toEqual([{ n: 5 }])
    await until(`document.querySelector('.badge').hidden`)
  })

  test('shows a decision that someone else has made in the meantime', async () => {
    const { id } = await paused()
    await go(`#/waiting/approvals/${id}`)
    await until(`document.querySelector('.pauses textarea')`)
    await type('[placeholder]', 'too late')
    const other = await rig.service.api('POST', `/api/v1/approvals/${id}/reject`, { comment: 'no', background: true })
    expect(other.status).toBe(202)
    await press('Approve')
    await until(`document.querySelector('.pauses .problem').textContent.includes('was already rejected')`)
    await until(`/^Rejected .*: no$/.test(document.querySelector('.verdict').textContent)`)
  })

  test('reports an unknown approval in the URL, and shows everything else that waits', async () => {
    await go(`#/waiting/approvals/${crypto.randomUUID()}`)
    await until(`document.querySelector('.waiting [role=status]').textContent.includes('not in this workspace')`)
    await until(`document.querySelector('.waiting .empty').textContent && !document.querySelector('.pauses li')`)
  })

  test('a parent run links to the question of its child, which is answered with an option', async () => {
    const { data } = await parent.invoke({ input: { message: 'go' } })
    expect(data.status).toBe('awaiting_input')
    await go(`#/runs/${data.run_id}`)
    await until(`/^Its child run .* waits for an answer/.test(document.querySelector('.detail .waits').textContent)`)
    await until(`document.querySelector('.children a')?.textContent.startsWith('child ')`)
    await page.evaluate(`document.querySelector('.detail .waits a').click()`)
    await until(`document.querySelector('.question')?.textContent === ${JSON.stringify(QUESTION.question)}`)
    await press(HOSTILE)
    await until(`document.querySelector('.verdict').textContent.endsWith(${JSON.stringify(`: ${HOSTILE}`)})`)
    await untilStatus(rig.service, data.run_id, 'completed')
    const answered = await rig.service.api('GET', `/api/v1/input-requests/${data.awaiting_input.request_id}`)
    expect(answered.data.answer).toBe(HOSTILE)
  })

  test('invokes an agent with the variables of its prompt; output streams in, also after a pause', async () => {
    await go('#/agents')
    const button = `[...document.querySelectorAll('.agents tr')].find((row) => row.textContent.startsWith('speaker'))?.querySelector('button')`
    await until(button)
    await page.evaluate(`${button}.click()`)
    await page.evaluate(
      `[...document.querySelectorAll('.invoke textarea')].forEach((field, at) => (field.value = ['Pay, please', 'Ada'][at]))`,
    )
    await page.evaluate(`document.querySelector('.invoke form').requestSubmit()`)
    await until(`document.querySelector('.output .waits a')?.hash.startsWith('#/waiting/approvals/')`)
    const transcript = `document.querySelector('.transcript').textContent`
    expect(await page.evaluate<string>(transcript)).toContain(`One moment. ${HOSTILE}`)
    expect(speaker.requests()[0]?.body.messages.map(({ content }) => content)).toEqual(['Help Ada.', 'Pay, please'])
    const id = await page.evaluate<string>(`document.querySelector('.output .waits a').hash.split('/').pop()`)
    await rig.service.api('POST', `/api/v1/approvals/${id}/approve`, { background: true })
    await until(`document.querySelector('.output .status').textContent === 'completed'`)
    expect(await page.evaluate<string>(transcript)).toMatch(/pay.*finished.*All is paid\.$/s)
  })

  test('renders no text as HTML, and logs no errors', async () => {
    expect(await page.evaluate<number>(`document.querySelectorAll('img, body script').length`)).toBe(0)
    expect(await page.evaluate<unknown>('window.pwned ?? null')).toBeNull()
    // A browser logs each response of status 400 and above; here a decision that came too late, and a missing approval.
    expect(page.complaints.filter((complaint) => !/status of 40[49]/.test(complaint))).toEqual([])
    expect(page.requests.filter((url) => url.includes('svc_ws_'))).toEqual([])
  })

  /** A run that waits for an approval. */
  async function paused(): Promise<{ readonly runId: string; readonly id: string }> {
    const { data } = await payer.invoke({ input: { message: 'pay' } })
    return { runId: data.run_id, id: data.awaiting_approval.approval_id }
  }

  function go(hash: string): Promise<void> {
    return page.evaluate(`void (location.hash = ${JSON.stringify(hash)})`)
  }

  /** Sets a field of the first card. */
  function type(selector: string, text: string): Promise<void> {
    const field = `document.querySelector(${JSON.stringify(`.pauses li ${selector}`)})`
    return page.evaluate(
      `void (${field}.value = ${JSON.stringify(text)}, ${field}.dispatchEvent(new Event('input', { bubbles: true })))`,
    )
  }

  function press(name: string): Promise<void> {
    const buttons = `[...document.querySelector('.pauses li').querySelectorAll('button')]`
    return page.evaluate(`${buttons}.find((each) => each.textContent === ${JSON.stringify(name)}).click()`)
  }

  function until(condition: string): Promise<unknown> {
    const check = () => page.evaluate<boolean>(`Boolean(${condition})`).catch(() => false)
    return eventually(check, { intervalMs: 30 })
  }
})
