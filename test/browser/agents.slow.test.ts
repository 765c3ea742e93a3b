import { beforeAll, describe, expect, test } from 'bun:test'
import { newAgent } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { untilStatus } from '../support/hosted.ts'
import { callTurn, type HostedRig, type ScriptedAgent, startHostedRig } from '../support/hosted-rig.ts'
import { chromium, type DashboardPage, HOSTILE, openDashboard, SHOWN } from './dashboard-page.ts'

/** Agents are built and understood in the dashboard: real services, a real browser. */

const QUESTION = { question: 'Which colour?', options: ['red', 'blue'] }

describe.skipIf(chromium === null)('agents in the dashboard (need a Chromium)', () => {
  let rig: HostedRig
  let page: DashboardPage
  let payer: ScriptedAgent
  let asker: ScriptedAgent
  let reporter: { agentId: string; agentKey: string }

  beforeAll(async () => {
    rig = await startHostedRig()
    payer = await rig.agent(rig.service, [callTurn(['pay', { n: 7 }]), { text: 'All is paid.' }], {
      name: 'payer',
      prompt: `You pay.\nBe brief. ${HOSTILE}`,
      tools: [rig.tools.tool('pay', { requires_approval: true })],
    })
    asker = await rig.agent(rig.service, [callTurn(['request_input', QUESTION]), { text: 'Thanks.' }], {
      name: 'asker',
      allow_input_requests: true,
    })
    reporter = await newAgent(rig.service.api, { name: 'reporter' })
    page = await openDashboard(rig.service.url)
    await page.signIn(rig.service.workspaceKey)
  })

  const api = (method: string, path: string, body?: unknown) => rig.service.api(method, `/api/v1${path}`, body)
  const agent = async (id: string) => (await api('GET', `/agents/${id}`)).data
  const url = (id: string, tab: string) => `#/agents/${id}?tab=${tab}`

  test('the list shows what each agent has done, the one that ran last first, and sorts by cost', async () => {
    const report = (path: string, body: object) =>
      rig.service.api('POST', `/api/ingest/v1/${path}`, body, { key: reporter.agentKey })
    for (const end of ['complete', 'fail']) {
      const { data } = await report('run/start', { agent_id: reporter.agentId })
      const usage = { input_tokens: 1, output_tokens: 1, cost_usd: 0.25 }
      const ended = await report(`run/${end}`, {
        run_id: data.run_id,
        usage,
        ...(end === 'fail' && { error_message: 'no' }),
      })
      expect(ended.status).toBe(200)
    }
    const names = `[...document.querySelectorAll('.agent-table .row-link')].map((each) => each.textContent).join()`
    const row = `[...document.querySelectorAll('.agent-table tr')].find((each) => /reporter/.test(each.textContent))`
    await eventually(async () => {
      // Again, because rows reach SQL a little later.
      await page.go('#/keys')
      await page.go('#/agents')
      await page.until(`document.querySelector('.agent-table .col-cost .hint, .agent-table .sparkline')`)
      return /50%.*\$0\.50/.test(await page.evaluate<string>(`${row}.textContent`))
    })
    expect(await page.evaluate<string>(`${row}.querySelector('.sparkline').ariaLabel`)).toBe(
      '2 runs in the last 7 days, 1 failed',
    )
    expect(await page.evaluate<string>(names)).toBe('reporter,asker,payer')
    await page.click('.agent-table .sort', 'Cost')
    await page.until(`document.querySelector('.col-cost[aria-sort=descending]')`)
    expect(await page.evaluate<string>('location.hash')).toBe('#/agents?sort=cost')
    await page.click('.view-tools a', 'New agent')
    await page.click('.detail-head a[aria-label=Close]')
    await page.until(`location.hash === '#/agents?sort=cost'`)
  })

  test('an HTTP tool is made with the form; what the service refuses is shown at its field', async () => {
    await page.go(url(asker.agentId, 'settings'))
    await page.click('.tools button', 'HTTP')
    const field = (label: string) => `.tool[open] [data-label="${label}"]`
    const mark = `document.querySelectorAll('.tool[open] .field').forEach((each) =>
      each.querySelector('input, textarea, select').setAttribute('data-label', each.querySelector('.field-label').textContent))`
    await page.until(`document.querySelector('.tool[open]')`)
    await page.evaluate(mark)
    await page.fill(field('Tool name'), 'look up')
    await page.fill(field('URL'), 'ftp://example.com')
    await page.fill(field('Parameters'), '{"type": "object"')
    await page.until(`document.querySelector('.agent-editor > .actions button').disabled`)
    await page.shows('.tool .field-problem', 'JSON')
    await page.fill(field('Parameters'), '{"type": "object", "properties": {"n": {"type": "whole"}}}')
    const save = () => page.click('.agent-editor > .actions button')
    await save()
    await page.until(
      `document.activeElement?.dataset.label === 'Tool name' && document.activeElement.ariaInvalid === 'true'`,
    )
    await page.shows('.field-problem', 'expected 1 to 64 letters')
    await page.fill(field('Tool name'), 'look_up')
    await save()
    await page.until(`document.activeElement?.dataset.label === 'URL'`)
    await page.shows('.field-problem', 'expected an http or https URL')
    await page.fill(field('URL'), 'https://example.com')
    await save()
    await page.until(`document.activeElement?.dataset.label === 'Parameters'`)
    await page.shows('.field-problem', 'properties.n.type: expected')
    await page.fill(field('Parameters'), '{"type": "object", "maximum": 1.0}')
    await page.fill(field('Headers'), '{"authorization": "Bearer {{secret:TOKEN}}"}')
    // Spaces are as good as nothing.
    for (const name of ['input_schema', 'max_output_tokens']) await page.fill(`.agent-editor [name=${name}]`, ' ')
    await save()
    await page.shows('.agent-editor [role=status]', 'Saved as version 2.')
    expect((await agent(asker.agentId)).tools).toEqual([
      {
        type: 'http',
        name: 'look_up',
        description: '',
        method: 'GET',
        url: 'https://example.com',
        parameters: { type: 'object', maximum: 1 },
        headers: { authorization: 'Bearer {{secret:TOKEN}}' },
      },
    ])
  })

  test('the same tools can be edited as JSON and as a form, and removed', async () => {
    await page.go(url(payer.agentId, 'settings'))
    await page.click('.tools button', 'Edit as JSON')
    const shown = `document.querySelector('.tools textarea').value`
    expect(JSON.parse(await page.evaluate<string>(shown))).toEqual((await agent(payer.agentId)).tools)
    await page.fill('.tools textarea', '[{"type": "lambda"}]')
    await page.until(`document.querySelector('.tools .actions button').disabled`)
    const mcp = { type: 'mcp', name: 'files', description: '', server_url: 'https://example.com/mcp' }
    await page.fill('.tools textarea', JSON.stringify([mcp]))
    await page.click('.tools button', 'Edit as a form')
    await page.shows('.tool summary', 'files')
    await page.click('.tools button', 'Remove this tool')
    await page.shows('.tools', 'None: the model can only answer.')
    await page.go('#/agents')
  })

  test('versions show who changed what, any two are compared, and an earlier one is restored', async () => {
    const first = await agent(payer.agentId)
    await api('PATCH', `/agents/${payer.agentId}`, { prompt: 'You pay.\nBe polite.', max_steps: 5 })
    await api('PATCH', `/agents/${payer.agentId}`, { temperature: 0.5 })
    await page.go(url(payer.agentId, 'versions'))
    await page.shows('.agent-versions tr[aria-current]', 'Version 3')
    await page.shows('.agent-versions tr', 'prompt, max steps')
    await page.shows('.agent-versions tr', 'the key "first key"')
    await page.shows('.comparison .diff-added', '0.5')
    await page.choose('.comparison select', 'compared with version 1')
    await page.shows('.diff-removed', `Be brief. ${SHOWN}`)
    await page.shows('.diff-added', 'Be polite.')
    expect(await page.evaluate<string>('location.hash')).toContain('with=1')
    await page.click('.agent-versions .row-link', 'Version 1')
    await page.click('.comparison button', 'Restore this version')
    await page.click('dialog button', 'Keep the current version')
    expect((await agent(payer.agentId)).version).toBe(3)
    await page.click('.comparison button', 'Restore this version')
    await page.click('dialog button', 'Restore')
    await page.shows('.agent-versions tr[aria-current]', 'restored from version 1')
    const { version, updated_at, ...restored } = await agent(payer.agentId)
    expect({ ...first, ...restored }).toEqual({ ...first })
    expect(version).toBe(4)
  })

  test('an agent that is tried has its call approved and its question answered in place', async () => {
    const before = rig.tools.calls.length
    await page.go(url(payer.agentId, 'try'))
    await page.fill('.try-message', 'Pay, please')
    await page.click('.try button[type=submit]')
    await page.click('.try .pause button', 'Edit the arguments')
    await page.fill('.try .decision textarea', '{"n": 5}')
    await page.click('.try .pause button', 'Approve with these arguments')
    await page.shows('.try .conversation', 'All is paid.')
    await page.until(`document.querySelector('.try .output .status').textContent === 'completed'`)
    expect(rig.tools.calls.slice(before).map(({ input }) => input)).toEqual([{ n: 5 }])
    expect(await page.count('.try .pause')).toBe(0)
    // Its tool refers to a secret that does not exist.
    await api('POST', `/agents/${asker.agentId}/versions/1/restore`, {})
    await page.go(url(asker.agentId, 'try'))
    await page.fill('.try-message', 'Ask me')
    await page.click('.try button[type=submit]')
    await page.shows('.try .question', 'Which colour?')
    await page.click('.try .pause button', 'blue')
    await page.shows('.try .conversation', 'Thanks.')
  })

  test('a run links to the version that it ran, and is invoked again with another input', async () => {
    const { data } = await api('GET', `/runs?agent_id=${asker.agentId}`)
    const [run] = data.items
    await untilStatus(rig.service, run.run_id, 'completed')
    await api('PATCH', `/agents/${asker.agentId}`, { temperature: 1 })
    await page.go(`#/runs/${run.run_id}`)
    await page.click('.run-head .facts a[href*="tab=versions"]')
    await page.shows('.agent-versions tr[aria-current]', `Version ${run.agent_version}`)
    await page.go(`#/runs/${run.run_id}`)
    await page.click('.head-actions button', 'Invoke again')
    await page.shows('dialog .hint', `this run had version ${run.agent_version}`)
    await page.fill('dialog textarea', '{"message": ')
    await page.until(`document.querySelector('dialog button[type=submit]').disabled`)
    await page.fill('dialog textarea', '{"message": "Ask again", "order": 9223372036854775807}')
    await page.click('dialog button[type=submit]')
    await page.until(`/^#\\/runs\\//.test(location.hash) && !location.hash.includes('${run.run_id}')`)
    const id = await page.evaluate<string>(`location.hash.split(/[/?]/)[2]`)
    expect((await api('GET', `/runs/${id}`)).text).toContain('{"message":"Ask again","order":9223372036854775807}')
    await api('POST', `/runs/${id}/cancel`, {})
  })

  test('an agent is archived, and restored from the list of those', async () => {
    await page.go(`#/agents/${reporter.agentId}`)
    await page.click('.head-actions button', 'Archive')
    await page.click('dialog button', 'Archive')
    await page.until(`location.hash === '#/agents'`)
    expect((await agent(reporter.agentId)).status).toBe('archived')
    await page.click('.archived-agents summary')
    await page.shows('.archived-agents li', 'reporter')
    expect(await page.evaluate<string>(`document.querySelector('.agent-table').textContent`)).not.toContain('reporter')
    await page.evaluate('location.reload()')
    await page.go(`#/runs?agent=${reporter.agentId}`)
    await page.shows('.run-list .row-link', 'reporter (archived)')
    await page.go('#/agents')
    await page.click('.archived-agents summary')
    await page.click('.archived-agents button', 'Restore')
    await page.shows('.agent-table .row-link', 'reporter')
    await page.shows('.archived-agents', 'None.')
    expect((await agent(reporter.agentId)).status).toBe('active')
    await page.go(`#/runs?agent=${reporter.agentId}`)
    await page.until(`document.querySelector('.run-list .row-link')?.textContent === 'reporter'`)
  })

  test('secrets are set, replaced and deleted; a value is never shown', async () => {
    const value = 'a-very-secret-value'
    await page.go('#/settings?tab=secrets')
    await page.fill('.secret-form input.mono', 'lower')
    await page.fill('.secret-form input[type=password]', value)
    await page.click('.secret-form button[type=submit]')
    await page.shows('.secret-form .field-problem', 'capital letters')
    await page.fill('.secret-form input.mono', 'API_TOKEN')
    await page.click('.secret-form button[type=submit]', 'Set the secret')
    await page.shows('.secrets td', 'API_TOKEN')
    expect(await page.evaluate<string>(`document.querySelector('.secret-form input[type=password]').value`)).toBe('')
    await page.send('Emulation.setDeviceMetricsOverride', {
      width: 400,
      height: 800,
      deviceScaleFactor: 1,
      mobile: false,
    })
    await page.until(
      `(({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth)(document.querySelector('.table-scroll'))`,
    )
    await page.send('Emulation.clearDeviceMetricsOverride')
    await page.click('.secrets td button', 'Replace')
    await page.fill('.secret-form input[type=password]', 'abc')
    await page.click('.secret-form button[type=submit]', 'Replace API_TOKEN')
    await page.shows('.secret-form .field-problem', 'expected 4 to')
    // Somebody else replaces it meanwhile.
    await api('PUT', '/secrets/API_TOKEN', { value: 'of somebody else' })
    await page.fill('.secret-form input[type=password]', value)
    await page.click('.secret-form button[type=submit]', 'Replace API_TOKEN')
    await page.shows('.secret-form .problem', 'Somebody else has changed this.')
    await page.go('#/settings')
    await page.go('#/settings?tab=secrets')
    await page.shows('.secrets td', 'API_TOKEN')
    expect(await page.evaluate<string>('document.documentElement.outerHTML')).not.toContain(value)
    await page.click('.secrets td button', 'Delete')
    await page.click('dialog button', 'Delete')
    await page.shows('.secrets', 'No secrets yet.')
    expect((await api('GET', '/secrets')).data.items).toEqual([])
  })

  test('settings name the workspace and how long its events are kept', async () => {
    const { data } = await api('GET', '/workspace')
    await page.go('#/settings')
    await page.shows('.settings h2', data.name)
    await page.shows('.settings .id code', data.workspace_id.slice(-8))
    await page.shows('.settings', 'Events are kept')
  })

  test('a key is made for an agent with an expiry, and found by its scope', async () => {
    await page.go('#/keys')
    await page.fill('.new-key input', 'for a week')
    await page.choose('select[aria-label="Scope of the new key"]', 'reporter')
    await page.choose('select[aria-label="Expiry of the new key"]', 'Expires in 7 days')
    await page.click('.new-key button')
    await page.shows('.made-key', 'expires')
    const { data } = await api('GET', `/keys?agent_id=${reporter.agentId}`)
    const [key] = data.items
    expect(key).toMatchObject({ name: 'for a week', type: 'agent' })
    const days = (Date.parse(key.expires_at) - Date.parse(key.created_at)) / 86_400_000
    expect(days).toBeCloseTo(7, 1)
    const row = `[...document.querySelectorAll('.keys tr')].find((each) => /for a week/.test(each.textContent))`
    await page.until(
      `${row}.textContent.includes('reporter') && ${row}.querySelector('time[datetime="${key.expires_at}"]')`,
    )
    await page.choose('select[aria-label=Scope]', 'Of the workspace')
    await page.until(`!${row} && document.querySelector('.keys td')`)
    expect(await page.evaluate<string>('location.hash')).toBe('#/keys?type=workspace')
  })

  test('logs no errors, and shows all text in its direction', async () => {
    // Refused settings and secrets.
    expect(page.complaintsBeside('400|409')).toEqual([])
    expect(await page.reversed()).toEqual([])
  })
})
