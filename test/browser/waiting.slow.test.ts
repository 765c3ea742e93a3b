import { beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '../support/eventually.ts'
import { untilStatus } from '../support/hosted.ts'
import { callTurn, type HostedRig, type ScriptedAgent, startHostedRig } from '../support/hosted-rig.ts'
import { chromium, type DashboardPage, HOSTILE, openDashboard, SHOWN } from './dashboard-page.ts'

/** People decide on pauses of hosted runs in the dashboard, and try agents there: real services, a real browser. */

const QUESTION = { question: `Which\ncolour? ${HOSTILE}`, options: ['red', HOSTILE] }

describe.skipIf(chromium === null)('hosted agents in the dashboard (needs a Chromium)', () => {
  let rig: HostedRig
  let page: DashboardPage
  let payer: ScriptedAgent
  let speaker: ScriptedAgent
  let parent: ScriptedAgent

  beforeAll(async () => {
    rig = await startHostedRig()
    payer = await rig.agent(rig.service, [callTurn(['pay', { n: 7, to: HOSTILE }]), { text: 'paid' }], {
      name: HOSTILE,
      tools: [rig.tools.tool('pay', { requires_approval: true })],
    })
    speaker = await rig.agent(
      rig.service,
      [{ text: `One **moment**. ${HOSTILE}`, ...callTurn(['pay', { n: 1 }]) }, { text: 'All is paid.' }],
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
    page = await openDashboard(rig.service.url)
    const { data: key } = await rig.service.api('POST', '/api/v1/keys', { name: 'Ada' })
    await page.signIn(key.key)
    await page.shows('.waiting-now', 'Nothing waits')
  })

  test('a new approval is counted in the navigation, and decided on the page of its run, with exact arguments', async () => {
    const before = rig.tools.calls.length
    const { runId } = await paused()
    await page.shows('.badge', '1')
    await page.go(`#/runs/${runId}`)
    await page.until(`document.querySelector('.pause pre')`)
    const shown = await page.evaluate<string>(`document.querySelector('.pause pre').textContent`)
    expect(shown).toBe(JSON.stringify({ n: 7, to: HOSTILE }, null, 2).replace('\u202e', '\\u202e'))
    await page.click('.pause button', 'Approve')
    await page.shows('.pause .verdict', 'Approved')
    await page.until(`document.querySelector('.run-head .status')?.textContent === 'completed'`)
    expect(rig.tools.calls.length).toBe(before + 1)
    await page.shows('.span-row', 'approval: pay')
    await page.until(`!document.querySelector('.badge')`)
  })

  test('approves a call with edited arguments once they are valid JSON, and shows what changed and who decided', async () => {
    const before = rig.tools.calls.length
    const { id } = await paused()
    await page.go(`#/waiting/approvals/${id}`)
    await page.until(`document.activeElement?.closest('.pause')`)
    await page.click('.pause button', 'Edit the arguments')
    await page.fill('.decision textarea', '{"n": 5')
    await page.until(`document.querySelector('.decision .primary').disabled`)
    await page.shows('.field-problem', 'JSON')
    await page.fill('.decision textarea', '{"n": 5}')
    await page.shows('.diff-added', '"n": 5')
    await page.fill('.comment', HOSTILE)
    await page.click('.pause button', 'Approve with these arguments')
    await page.shows('.verdict', 'Approved')
    await page.shows('.verdict', `the key "Ada": ${SHOWN}`)
    await page.shows('.pause pre', '{\n  "n": 5\n}')
    expect(await page.count('.decision')).toBe(0)
    await eventually(() => rig.tools.calls.length > before)
    expect(rig.tools.calls.slice(before).map(({ input }) => input)).toEqual([{ n: 5 }])
  })

  test('a link to an approval shows the whole of it before all others, marked, and so its decision comes first', async () => {
    const { id } = await paused()
    const newer = await paused()
    await page.go('#/waiting')
    await page.until(`document.querySelectorAll('.pause.is-open').length > 1`)
    await page.send('Emulation.setDeviceMetricsOverride', {
      width: 1000,
      height: 900,
      deviceScaleFactor: 1,
      mobile: false,
    })
    await page.evaluate('scrollTo(0, document.body.scrollHeight)')
    await page.go(`#/waiting/approvals/${id}`)
    const card = `document.querySelector('.pause[aria-current]')`
    await page.until(`${card} === document.querySelector('.pause') && ${card}.contains(document.activeElement)`)
    await page.until(`(({ top, bottom }) => top >= 0 && bottom <= innerHeight)(${card}.getBoundingClientRect())`)
    expect(await page.count('.pause[aria-current]')).toBe(1)
    await page.send('Emulation.clearDeviceMetricsOverride')
    await page.click('.decision button', 'Reject')
    await page.until(`/^Rejected/.test(${card}.querySelector('.verdict')?.textContent)`)
    const stored = await rig.service.api('GET', `/api/v1/approvals/${id}`)
    expect(stored.data.status).toBe('rejected')
    await rig.service.api('POST', `/api/v1/approvals/${newer.id}/reject`, { background: true })
  })

  test('shows a decision that someone else has made in the meantime', async () => {
    const { id } = await paused()
    await page.go(`#/waiting/approvals/${id}`)
    await page.until(`document.querySelector('.decision .comment')`)
    await page.fill('.comment', 'too late')
    const other = await rig.service.api('POST', `/api/v1/approvals/${id}/reject`, { comment: 'no', background: true })
    expect(other.status).toBe(202)
    await page.click('.decision button', 'Approve')
    await page.shows('.pause .problem', 'was already rejected')
    await page.until(
      `[...document.querySelectorAll('.verdict')].some((each) => /^Rejected .*: no$/.test(each.textContent))`,
    )
  })

  test('a model call of a hosted run shows its facts, and leads to the conversation of the run', async () => {
    const { data } = await parent.invoke({ input: { message: 'go' } })
    await page.go(`#/runs/${data.run_id}`)
    await page.click('.span-row.model')
    await page.shows('.detail .facts', 'Finish reason')
    await page.click('.detail button', 'Open the conversation')
    await page.shows('.message.user', 'go')
    expect(await page.evaluate<string>('location.hash')).toContain('tab=conversation')
    await rig.service.api('POST', `/api/v1/runs/${data.run_id}/cancel`, {})
  })

  test('reports an unknown approval in the URL, and shows that nothing else waits', async () => {
    await page.go(`#/waiting/approvals/${crypto.randomUUID()}`)
    await page.shows('.waiting [role=status]', 'not in this workspace')
    await page.until(`document.querySelector('.waiting .empty') && !document.querySelector('.pause')`)
  })

  test('the question of a child run is answered with an option on the page of its parent', async () => {
    const { data } = await parent.invoke({ input: { message: 'go' } })
    expect(data.status).toBe('awaiting_input')
    await page.go(`#/runs/${data.run_id}`)
    await page.until(
      `document.querySelector('.question')?.textContent === ${JSON.stringify(QUESTION.question.replace(HOSTILE, SHOWN))}`,
    )
    await page.shows('.span-row.child', 'run …')
    await page.click('.pause button', SHOWN)
    await page.until(`document.querySelector('.verdict')?.textContent.endsWith(${JSON.stringify(`: ${SHOWN}`)})`)
    await untilStatus(rig.service, data.run_id, 'completed')
    const answered = await rig.service.api('GET', `/api/v1/input-requests/${data.awaiting_input.request_id}`)
    expect(answered.data.answer).toBe(HOSTILE)
  })

  test('an agent is tried with the variables of its prompt; its answer streams in, also after a pause', async () => {
    await page.go(`#/agents/${speaker.agentId}?tab=try`)
    await page.fill('.try .field textarea', 'Ada')
    await page.fill('.try-message', 'Pay, please')
    await page.click('.try button[type=submit]')
    await page.until(`document.querySelector('.output .waits a')?.hash.startsWith('#/waiting/approvals/')`)
    expect(await page.text('.conversation')).toContain(`One moment. ${SHOWN}`)
    expect(await page.text('.conversation strong')).toBe('moment')
    expect(speaker.requests()[0]?.body.messages.map(({ content }) => content)).toEqual(['Help Ada.', 'Pay, please'])
    expect(speaker.requests()[0]?.body.stream).toBe(true)
    const id = await page.evaluate<string>(`document.querySelector('.output .waits a').hash.split('/').pop()`)
    await rig.service.api('POST', `/api/v1/approvals/${id}/approve`, { background: true })
    await page.until(`document.querySelector('.output .status').textContent === 'completed'`)
    expect(await page.text('.conversation')).toMatch(/pay.*finished.*All is paid\./s)
  })

  test('renders no text as HTML, shows all text in its direction, and logs no errors', async () => {
    expect(await page.count('img, body script')).toBe(0)
    expect(await page.evaluate<unknown>('window.pwned ?? null')).toBeNull()
    // A decision that came too late, and a missing approval.
    expect(page.complaintsBeside('40[49]')).toEqual([])
    expect(await page.reversed()).toEqual([])
    expect(page.requests.filter((url) => url.includes('svc_ws_'))).toEqual([])
  })

  /** A run that waits for an approval. */
  async function paused(): Promise<{ readonly runId: string; readonly id: string }> {
    const { data } = await payer.invoke({ input: { message: 'pay' } })
    return { runId: data.run_id, id: data.awaiting_approval.approval_id }
  }
})
