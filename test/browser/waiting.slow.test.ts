import { beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { createLog } from '../../src/base/log.ts'
import { connectPostgres } from '../../src/stores/postgres/connect.ts'
import { eventually } from '../support/eventually.ts'
import { untilStatus } from '../support/hosted.ts'
import { callTurn, type HostedRig, type ScriptedAgent, startHostedRig } from '../support/hosted-rig.ts'
import { chromium, type DashboardPage, HOSTILE, openDashboard, SHOWN } from './dashboard-page.ts'

/** People decide on pauses of hosted runs in the dashboard, and try agents there: real services, a real browser. */

const AXE = readFileSync(Bun.resolveSync('axe-core/axe.min.js', import.meta.dir), 'utf8')
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
    await page.shows('.decision-line .status', 'approved')
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

  test('a link opens its approval in place and marks it, with who asked and what was said before', async () => {
    const { id, sessionId } = await paused({ start_session: true, external_user_id: 'ada@example.com' })
    const newer = await paused()
    await openList()
    await page.until(`document.querySelectorAll('.pause-row [data-pause]').length > 1`)
    await page.send('Emulation.setDeviceMetricsOverride', {
      width: 1000,
      height: 900,
      deviceScaleFactor: 1,
      mobile: false,
    })
    await page.evaluate('scrollTo(0, document.body.scrollHeight)')
    await page.go(`#/waiting/approvals/${id}`)
    const card = `document.querySelector('.pause[aria-current]')`
    await page.until(`${card}?.contains(document.activeElement) && ${card}.querySelector('.decision')`)
    await page.until(`(({ top, bottom }) => top >= 0 && bottom <= innerHeight)(${card}.getBoundingClientRect())`)
    expect(await page.count('.pause')).toBe(1)
    expect(await page.evaluate<string[]>(`[...${card}.querySelectorAll('.facts a')].map((each) => each.hash)`)).toEqual(
      [
        '#/users/ada%40example.com',
        `#/sessions/${sessionId}`,
        expect.stringContaining('#/runs/'),
        `#/agents/${payer.agentId}`,
      ],
    )
    expect(await page.text('.said-before')).toContain(`pay ${SHOWN}`)
    await page.send('Emulation.clearDeviceMetricsOverride')
    await page.click('.decision button', 'Reject')
    await page.until(`/^Rejected/.test(${card}.querySelector('.verdict')?.textContent)`)
    const stored = await rig.service.api('GET', `/api/v1/approvals/${id}`)
    expect(stored.data.status).toBe('rejected')
    // It stays where it was until the user asks for what is new.
    await page.shows('.pause-row .status', 'rejected')
    await reject(newer.id)
  })

  test('what is typed into a linked card stays when the list gets its request, too', async () => {
    const older = await paused()
    await openList()
    await page.until(`document.querySelector('.pause-row [data-pause="${older.id}"]')`)
    const newer = await paused()
    await page.shows('.new-runs', '1 new')
    await page.go(`#/waiting/approvals/${newer.id}`)
    await page.click('.pause-named button', 'Edit the arguments')
    await page.fill('.decision textarea', '{"n": 6}')
    await page.click('.new-runs button')
    await page.until(`document.querySelector('.pause-row [data-pause="${newer.id}"]')`)
    expect(await page.evaluate<string>(`document.querySelector('.decision textarea').value`)).toBe('{"n": 6}')
    expect(await page.count('.pause')).toBe(1)
    await Promise.all([reject(older.id), reject(newer.id)])
  })

  test('keys move between the lines, open one, and lead to the button that decides', async () => {
    const one = await paused({ start_session: true, external_user_id: 'kim' })
    const two = await paused()
    await openList()
    await page.until(`document.querySelectorAll('.pause-row [data-pause]').length === 2`)
    await page.choose('select[aria-label="User"]', 'kim')
    await page.until(`document.querySelectorAll('.pause-row [data-pause]').length === 1`)
    expect(await page.evaluate<string>('location.hash')).toBe('#/waiting?user=kim')
    await page.press('j')
    await page.until(`document.activeElement?.dataset.pause === '${one.id}'`)
    await page.press('d')
    await page.until(`document.activeElement?.textContent === 'Reject'`)
    expect(await page.evaluate<string>('location.hash')).toBe(`#/waiting/approvals/${one.id}?user=kim`)
    await page.evaluate('void document.activeElement.click()')
    await page.shows('.pause .verdict', 'Rejected')
    await page.press('Escape')
    await page.until(`!document.querySelector('.pause') && location.hash === '#/waiting?user=kim'`)
    await reject(two.id)
  })

  test('several calls are decided at once with one comment; one that someone else has decided says so', async () => {
    const settings = { tools: [rig.tools.tool('pay', { requires_approval: true })], name: 'pays twice' }
    const turns = [callTurn(['pay', { n: 1 }], ['pay', { n: 2 }]), { text: 'paid' }]
    const twice = await rig.agent(rig.service, turns, settings)
    await twice.invoke({ input: { message: 'go' } })
    const single = await paused()
    await openList()
    await page.shows('.pause-group', '2 requests of the run')
    const arrived = await paused()
    await page.shows('.new-runs button', '1 new')
    expect(await page.count(`[data-pause="${arrived.id}"]`)).toBe(0)
    const before = rig.tools.calls.length
    await page.click('.pause-group input')
    await page.click(`.pause-row:has([data-pause="${single.id}"]) input`)
    await page.shows('.choice-bar', '3 calls chosen')
    await page.click('.choice-bar button', 'Decide…')
    await page.until(`document.querySelectorAll('dialog pre').length === 3`)
    expect(await page.text('dialog pre')).toContain('"n": 2')
    await page.fill('dialog textarea', 'checked together')
    await reject(single.id)
    await page.click('dialog button', 'Approve 3 calls')
    await page.shows('dialog [role=status]', 'approved')
    expect(await page.text('dialog [role=status]')).toMatch(/2 approved.*1 rejected|1 rejected, 2 approved/)
    await page.shows('dialog .problem', 'was already rejected')
    await page.click('dialog button', 'Close')
    await eventually(() => rig.tools.calls.length >= before + 2)
    expect(
      rig.tools.calls
        .slice(before)
        .map(({ input }) => (input as { n: number }).n)
        .sort(),
    ).toEqual([1, 2])
    await page.click('.new-runs button')
    await page.until(`document.querySelector('[data-pause="${arrived.id}"]')`)
    await reject(arrived.id)
  })

  test('what was decided is listed with by whom and why, newest first, and opens with what was edited', async () => {
    await openList()
    await page.click('.tabs button', 'Decided')
    await page.shows('.pause-decider', 'the key "Ada"checked together')
    expect(await page.evaluate<string>(`document.querySelector('.pause-row .status').textContent`)).toBe('rejected')
    await page.choose('select[aria-label="Outcome"]', 'approved')
    await page.until(
      `[...document.querySelectorAll('.pause-row .status')].every((each) => /approved/.test(each.textContent))`,
    )
    await page.until(
      `[...document.querySelectorAll('.pause-row .status')].some((each) => /edited/.test(each.textContent))`,
    )
    await page.evaluate(
      `void [...document.querySelectorAll('.pause-row')].find((each) => /approved, edited/.test(each.textContent)).querySelector('[data-pause]').click()`,
    )
    await page.shows('.pause .diff-added', '"n": 5')
    expect(await page.evaluate<string>('location.hash')).toContain('tab=decided')
  })

  test('a thousand that wait are drawn as they come into view, and chosen a hundred at a time', async () => {
    const { runId, id } = await paused()
    const clones = connectPostgres(rig.service.databaseUrl, { log: createLog('error'), max: 1 })
    await clones`
      insert into pauses (pause_id, workspace_id, agent_id, run_id, call_id, type, status, tool, input, created_at, frame)
      select uuidv7(), workspace_id, agent_id, run_id, call_id, type, status, tool, input, created_at, frame
      from pauses cross join generate_series(1, 999) where pause_id = ${id}`
    await clones.end()
    await openList()
    await page.shows('.badge', '1000')
    await page.shows('.filters [role=status]', '1,000 requests')
    expect(await page.evaluate<string>('document.title')).toStartWith('(1000) Waiting')
    expect(await page.count('.pause-row')).toBeLessThan(80)
    expect(await axe()).toEqual([])
    await page.click('.choice-bar input')
    await page.shows('.choice-bar', '100 calls chosen')
    await page.evaluate(`void (document.querySelector('.virtual').scrollTop = 1e6)`)
    await page.until(`document.querySelector('.virtual-rows').style.transform.match(/[0-9]+/)[0] > 30000`)
    await page.evaluate(`void [...document.querySelectorAll('.pause-row [data-pause]')].at(-1).click()`)
    await page.until(`document.querySelector('.pause .decision')`)
    await page.send('Emulation.setDeviceMetricsOverride', {
      width: 380,
      height: 800,
      deviceScaleFactor: 1,
      mobile: false,
    })
    expect(await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0)
    expect(await axe()).toEqual([])
    await page.send('Emulation.clearDeviceMetricsOverride')
    await rig.service.api('POST', `/api/v1/runs/${runId}/cancel`, {})
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
    await page.click('.span-row.kind-model')
    await page.shows('.step .facts', 'Finish reason')
    await page.click('.step button', 'Open the conversation')
    await page.shows('.message.user', 'go')
    expect(await page.evaluate<string>('location.hash')).toContain('tab=conversation')
    await rig.service.api('POST', `/api/v1/runs/${data.run_id}/cancel`, {})
  })

  test('reports an unknown approval in the URL, and shows that nothing else waits', async () => {
    await openList()
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
    await page.shows('.span-row.kind-child', 'run …')
    await page.click('.pause button', SHOWN)
    await page.shows('.decision-line .preview', SHOWN)
    await untilStatus(rig.service, data.run_id, 'completed')
    const answered = await rig.service.api('GET', `/api/v1/input-requests/${data.awaiting_input.request_id}`)
    expect(answered.data.answer).toBe(HOSTILE)
  })

  test('an agent is tried with the variables of its prompt; its answer streams in, also after a pause', async () => {
    await page.go(`#/agents/${speaker.agentId}?tab=try`)
    await page.fill('.try .field textarea', 'Ada')
    await page.fill('.try-message', 'Pay, please')
    await page.click('.try button[type=submit]')
    await page.until(`document.querySelector('.try .pause .decision')`)
    expect(await page.text('.conversation')).toContain(`One moment. ${SHOWN}`)
    expect(await page.text('.conversation strong')).toBe('moment')
    expect(speaker.requests()[0]?.body.messages.map(({ content }) => content)).toEqual(['Help Ada.', 'Pay, please'])
    expect(speaker.requests()[0]?.body.stream).toBe(true)
    const { data } = await rig.service.api('GET', `/api/v1/approvals?status=pending`)
    const { approval_id: id } = data.items.find((each: { agent_id: string }) => each.agent_id === speaker.agentId)
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
  async function paused(body: object = {}) {
    const { data } = await payer.invoke({ input: { message: `pay ${HOSTILE}` }, ...body })
    const { run_id: runId, session_id: sessionId, awaiting_approval } = data
    return { runId: runId as string, sessionId: sessionId as string, id: awaiting_approval.approval_id as string }
  }

  /** Comes to the view from another one: it shows what waits by then. */
  async function openList(): Promise<void> {
    await page.go('#/overview')
    await page.until(`document.querySelector('.waiting-now')`)
    await page.go('#/waiting')
  }

  async function axe(): Promise<string[]> {
    const violations = `axe.run({ resultTypes: ['violations'] }).then(({ violations }) =>
      violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html).join(' ')))`
    return page.evaluate(`(() => { ${AXE} })() ?? ${violations}`)
  }

  function reject(id: string) {
    return rig.service.api('POST', `/api/v1/approvals/${id}/reject`, { background: true })
  }
})
