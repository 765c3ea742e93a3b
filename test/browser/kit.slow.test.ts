import { beforeAll, describe, expect, test } from 'bun:test'
import { startTestService, type TestService } from '../support/service.ts'
import { chromium, type DashboardPage, openDashboard } from './dashboard-page.ts'

/** What all views of the dashboard have from its kit: states of what is read, forms, dialogs and lists. */

describe.skipIf(chromium === null)('the kit of the dashboard (needs a Chromium)', () => {
  let service: TestService
  let page: DashboardPage

  beforeAll(async () => {
    service = await startTestService()
    page = await openDashboard(service.url)
    await page.signIn(service.workspaceKey)
    await page.until(`document.querySelector('.waiting-now')`)
  })

  /** From now on, the service refuses these requests, such as `GET /api/v1/secrets`, and no others. */
  const refuse = (errors: Readonly<Record<string, object>>) =>
    page.evaluate(`globalThis.realFetch ??= fetch, void (globalThis.fetch = (url, options = {}) => {
      const error = ${JSON.stringify(errors)}[(options.method ?? 'GET') + ' ' + String(url).split('?')[0]]
      return error === undefined
        ? realFetch(url, options)
        : Promise.resolve(Response.json({ data: null, error }, { status: 500 }))
    })`)
  const BROKEN = { code: 'INTERNAL', message: 'out of order' }
  const refusedAt = (param: string) => ({ code: 'VALIDATION_ERROR', message: `wrong ${param}`, param })
  /** What describes the control that has the focus, if it is marked as refused. */
  const focused = `(({ ariaInvalid, name, attributes }) => ariaInvalid === 'true' && [
    name,
    ...attributes['aria-describedby'].value.split(' ').map((id) => document.getElementById(id).textContent),
  ].join(': '))(document.activeElement)`
  const until = (value: string) => page.until(`${focused} === ${JSON.stringify(value)}`)

  test('what cannot be read says why in the place of the content, and is read again on request', async () => {
    await refuse({ 'GET /api/v1/secrets': BROKEN })
    await page.go('#/settings?tab=secrets')
    await page.shows('.secrets [role=alert]', 'Out of order.')
    expect(await page.count('.secrets .skeleton')).toBe(0)
    await refuse({})
    await page.click('.secrets [role=alert] button', 'Try again')
    await page.shows('.secrets', 'No secrets yet.')
    expect(await page.count('.secrets [role=alert]')).toBe(0)
  })

  test('what cannot be read again stays, below why', async () => {
    await refuse({ 'GET /api/v1/secrets': BROKEN })
    await page.fill('.secret-form input[name=name]', 'API_TOKEN')
    await page.fill('.secret-form input[name=value]', 'value')
    await page.click('.secret-form button', 'Set the secret')
    await page.shows('.secrets [role=alert]', 'Out of order.')
    await page.shows('.secrets [role=alert] + p', 'No secrets yet.')
    await refuse({})
    await page.click('.secrets [role=alert] button', 'Try again')
    await page.shows('.secrets td', 'API_TOKEN')
  })

  test('what does not exist is said in words of its own', async () => {
    await page.go('#/users/nobody')
    await page.shows('.user .empty', 'No run names this user.')
    expect(await page.count('.user [role=alert]')).toBe(0)
  })

  test('what is refused is said at its control, which gets the focus and is described by it', async () => {
    await page.go('#/webhooks?new=yes')
    await page.fill('.webhook-form input[name=url]', 'https://example.com/hook')
    await page.choose('.webhook-form select[name=selection]', 'Activity that matches a filter')
    await page.fill('.webhook-form input[name=types]', 'a*b')
    await page.click('.webhook-form button', 'Create')
    await page.until(`document.activeElement.name === 'types' && document.activeElement.ariaInvalid === 'true'`)
    expect(await page.evaluate<string>(focused)).toContain('a * is allowed only at the end')
    expect(await page.count('.webhook-form [aria-invalid=true]')).toBe(1)
    expect(await page.count('.webhook-form .problem')).toBe(0)
    for (const [member, name] of Object.entries({ kind: 'kinds', status: 'statuses', agent_id: 'agents' })) {
      await refuse({ 'POST /api/v1/webhooks': refusedAt(`filter.${member}`) })
      await page.click('.webhook-form button', 'Create')
      await until(`${name}: wrong filter.${member}`)
    }
    await page.choose('.webhook-form select[name=selection]', 'All activity')
    await page.click('.webhook-form button', 'Create')
    await until('selection: Alerts that name this webhook are always sent.: agent_id: wrong filter.agent_id')
    await page.go('#/agents?new=yes')
    await page.choose('.agent-editor select', 'in this service (hosted)')
    for (const name of ['name', 'model', 'prompt']) await page.fill(`.agent-editor [name=${name}]`, 'any')
    await refuse({ 'POST /api/v1/agents': refusedAt('expose') })
    await page.click('.agent-editor button', 'Create')
    await until('isMcpTool: wrong expose')
    await page.go('#/keys')
    await page.fill('.new-key input', 'any')
    await refuse({ 'POST /api/v1/keys': refusedAt('name') })
    await page.click('.new-key button')
    await until('name: wrong name')
    await refuse({})
  })

  interface FormCase {
    readonly hash: string
    readonly form: string
    /** Until all its fields are there. */
    readonly open?: () => Promise<unknown>
    readonly request: string
    /** Of a field whose name is not its place in the request; null for one that is in none. */
    readonly places?: Readonly<Record<string, string | null>>
    readonly fields: number
  }

  const FORMS: Readonly<Record<string, FormCase>> = {
    webhook: {
      hash: '#/webhooks?new=yes',
      form: '.webhook-form',
      open: () => page.choose('.webhook-form select[name=selection]', 'Activity that matches a filter'),
      request: 'POST /api/v1/webhooks',
      places: { kinds: 'filter.kind', statuses: 'filter.status', types: 'filter.type', agents: 'filter.agent_id' },
      fields: 10,
    },
    alert: {
      hash: `#/alerts?${new URLSearchParams({ new: 'yes', q: 'SELECT 1 AS n' })}`,
      form: '.alert-form',
      request: 'POST /api/v1/alerts',
      places: {
        ...{ template: null, range: null, step: null, value: 'condition.value', column: 'condition.column' },
        ...{ op: 'condition.op', recover: 'condition.recover_value', keep: 'keep_firing_for' },
        ...{ noData: 'no_data', onError: 'on_error' },
      },
      fields: 10,
    },
    'hosted agent': {
      hash: '#/agents?new=yes',
      form: '.agent-editor',
      async open() {
        await page.choose('.agent-editor select', 'in this service (hosted)')
        for (const type of ['HTTP', 'MCP server', 'Agent']) await page.click('.tools > .actions button', type)
        await page.until(`document.querySelectorAll('.tool').length === 3`)
      },
      request: 'POST /api/v1/agents',
      places: { isMcpTool: 'expose' },
      fields: 30,
    },
    secret: {
      hash: '#/settings?tab=secrets',
      form: '.secret-form',
      open: () => page.fill('.secret-form [name=name]', 'ANY'),
      request: 'PUT /api/v1/secrets/ANY',
      places: { name: 'path.name' },
      fields: 2,
    },
    key: {
      hash: '#/keys',
      form: '.new-key',
      request: 'POST /api/v1/keys',
      places: { chosen: 'path.agent_id', days: 'expires_at' },
      fields: 3,
    },
    board: {
      hash: '#/boards',
      form: 'dialog form',
      open: () => page.click('.boards button', 'New board'),
      request: 'POST /api/v1/boards',
      fields: 1,
    },
  }

  test.each(Object.entries(FORMS))(
    'each field of the form of a %s has a name and says what is refused of it',
    async (_, each) => {
      const { hash, form, open, request, places = {}, fields } = each
      await refuse({})
      await page.go(hash)
      await open?.()
      await page.until(`document.querySelector('${form}')`)
      const found = await page.evaluate<{ name: string; isNamed: boolean }[]>(
        `[...document.querySelector('${form}').elements].filter((each) => each.matches('input, select, textarea')).map(
        (each) => ({ name: each.name, isNamed: each.ariaLabel !== null || each.labels.length > 0 }))`,
      )
      expect(found.filter(({ isNamed }) => !isNamed)).toEqual([])
      const names = [...new Set(found.map(({ name }) => name))].filter((name) => places[name] !== null)
      expect(names).not.toContain('')
      expect(names.length).toBeGreaterThanOrEqual(fields)
      for (const name of names) {
        const place = places[name] ?? name
        await refuse({ [request]: refusedAt(place) })
        // What the browser itself would refuse is not tested here.
        await page.evaluate(
          `((form) => (form.noValidate = true, document.activeElement.blur(), form.requestSubmit()))(document.querySelector('${form}'))`,
        )
        await page.until(
          `(${focused} || '').startsWith(${JSON.stringify(`${name}: `)}) && ${focused}.includes('wrong ${place}')`,
        )
      }
      await refuse({})
    },
  )

  test('a deleted webhook can be taken out of an alert, and the form says that it must be', async () => {
    const made = await Promise.all(
      ['gone', 'kept'].map((description) =>
        service.api('POST', '/api/v1/webhooks', { url: 'https://example.com/hook', description }),
      ),
    )
    const [gone, kept] = made.map(({ data }) => data.webhook_id) as [string, string]
    const { data: alert } = await service.api('POST', '/api/v1/alerts', {
      ...{ name: 'any', query: 'SELECT 1 AS n', every: '1d', condition: 'any_row', notify: [gone] },
    })
    const path = `/api/v1/alerts/${alert.alert_id}`
    await service.api('DELETE', `/api/v1/webhooks/${gone}`)
    await page.go(`#/alerts/${alert.alert_id}?tab=settings`)
    await page.click('.alert-form .choices label', 'kept')
    await page.click('.alert-form button', 'Save')
    await page.shows('.alert-form .choices [role=alert]', 'webhook does not exist')
    await page.click('.alert-form .choices label', `webhook …${gone.slice(-8)}`)
    await page.click('.alert-form button', 'Save')
    await page.shows('.alert-form [role=status]', 'Saved.')
    expect((await service.api('GET', path)).data.notify).toEqual([kept])
    // While the webhooks cannot be read, there is no control to say it at.
    await refuse({ 'GET /api/v1/webhooks': BROKEN, 'POST /api/v1/alerts': refusedAt('notify[0]') })
    await page.go('#/alerts?new=yes&q=SELECT+1+AS+n')
    await page.fill('.alert-form input[name=name]', 'other')
    await page.choose('.alert-form select[name=condition]', 'there is a row')
    await page.click('.alert-form button', 'Create')
    await page.shows('.alert-form > [role=alert]', 'wrong notify[0]')
    await refuse({})
  })

  test('j and k move between the rows of a list, and Enter opens one', async () => {
    await page.go('#/agents')
    for (const name of ['one', 'two']) await service.api('POST', '/api/v1/agents', { name })
    await page.evaluate('location.reload()')
    await page.until(`document.querySelectorAll('.agent-table .row-link').length === 2`)
    const row = `[...document.querySelectorAll('.agent-table .row-link')].indexOf(document.activeElement)`
    for (const [key, at] of [
      ['j', 0],
      ['j', 1],
      ['j', 1],
      ['k', 0],
    ] as const) {
      await page.press(key)
      expect(await page.evaluate<number>(row)).toBe(at)
    }
    await page.press('Enter')
    await page.until(`document.querySelector('.agent h2')`)
  })

  test('when a dialog or a row goes, the focus goes back, or to what is in its place', async () => {
    const at = 'document.activeElement'
    for (const name of ['API_TOKEN', 'A_1', 'B_2', 'C_3'])
      await service.api('PUT', `/api/v1/secrets/${name}`, { value: 'value' })
    await page.go('#/settings?tab=secrets')
    await page.shows('.secrets td', 'C_3')
    const buttonOf = (name: string, text: string) =>
      `[...[...document.querySelectorAll('.secrets tr')].find((row) => row.textContent.startsWith('${name}'))
        .querySelectorAll('button')].find((button) => button.textContent === '${text}')`
    const remove = async (name: string) => {
      await page.evaluate(`(${buttonOf(name, 'Delete')}.focus(), void ${buttonOf(name, 'Delete')}.click())`)
      await page.until(`${at}.closest('dialog')`)
    }
    await remove('B_2')
    await page.click('dialog button', 'Keep it')
    await page.until(`${at} === ${buttonOf('B_2', 'Delete')}`)
    await remove('B_2')
    await page.click('dialog button', 'Delete')
    await page.until(`!document.querySelector('.secrets').textContent.includes('B_2')`)
    await page.until(`${at}.closest('tr')?.textContent.startsWith('A_1')`)
    // The last row.
    await remove('API_TOKEN')
    await page.click('dialog button', 'Delete')
    await page.until(`!document.querySelector('.secrets').textContent.includes('API_TOKEN')`)
    await page.until(`${at}.closest('tr')?.textContent.startsWith('A_1')`)
    // Whoever has clicked on nothing has left the row.
    await page.evaluate(`(${buttonOf('A_1', 'Delete')}.focus(), ${buttonOf('A_1', 'Delete')}.blur())`)
    await page.evaluate(`${buttonOf('A_1', 'Delete')}.closest('tr').remove()`)
    await Bun.sleep(100)
    expect(await page.evaluate<boolean>(`${at} === document.body`)).toBe(true)
    // With a view that goes, the focus goes to the next one.
    await page.evaluate(`document.querySelector('.settings .tabs button').focus()`)
    await page.go('#/overview')
    await page.until(`${at}.id === 'main'`)
  })

  test('the button that opened a dialog has the focus again when the dialog has done its work', async () => {
    const { data } = await service.api('POST', '/api/v1/boards', { name: 'mine' })
    await page.go(`#/boards/${data.board_id}`)
    await page.click('.boards .head-actions button', 'Edit')
    const button = `[...document.querySelectorAll('.boards button')].find((each) => each.textContent === 'Rename')`
    await page.until(button)
    await page.evaluate(`(${button}.focus(), ${button}.click())`)
    await page.fill('dialog input', 'ours')
    await page.click('dialog button[type=submit]')
    await page.until(`!document.querySelector('dialog') && document.activeElement === ${button}`)
  })

  test('Enter in the value of a placeholder tries the query of an alert, and creates nothing', async () => {
    const before = (await service.api('GET', '/api/v1/alerts')).data.items.length
    await page.go(`#/alerts?${new URLSearchParams({ new: 'yes', q: 'SELECT {n:UInt8} AS n' })}`)
    await page.fill('.alert-form input[name=name]', 'not yet')
    await page.choose('.alert-form select[name=condition]', 'there is a row')
    await page.fill('.alert-form .placeholders input', '7')
    await page.evaluate(`void document.querySelector('.alert-form .placeholders input').focus()`)
    await page.press('Enter')
    await page.shows('.alert-query .result-row', '7')
    expect((await service.api('GET', '/api/v1/alerts')).data.items).toHaveLength(before)
  })

  test('a search of events that fails says so', async () => {
    const agent = await service.api('POST', '/api/v1/agents', { name: 'reporter' })
    const key = (await service.api('POST', `/api/v1/agents/${agent.data.agent_id}/keys`, { name: 'its' })).data.key
    const report = (path: string, body: object) => service.api('POST', `/api/ingest/v1/${path}`, body, { key })
    const { run_id } = (await report('run/start', { agent_id: agent.data.agent_id })).data
    await report('events', { run_id, events: [{ type: 'step', payload: { note: 'needle' } }] })
    await page.go(`#/runs/${run_id}?tab=events`)
    await page.shows('.event-row', 'step')
    await refuse({ 'POST /api/v1/query': BROKEN })
    await page.fill('.run-search input, input.run-search', 'needle')
    await page.shows('.events [role=alert]', 'Out of order.')
    await refuse({})
    await page.click('.events [role=alert] button', 'Try again')
    await page.until(`!document.querySelector('.events [role=alert]')`)
    await page.shows('.event-row', 'step')
  })
})
