import { beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { callTurn, startBackends } from '../support/hosted-rig.ts'
import { ADA, BOB, EVE, type PeopleRig, startPeople } from '../support/people.ts'
import { chromium, type DashboardPage, openDashboard } from './dashboard-page.ts'

/** People sign in to the dashboard at a real OpenID provider: a real browser. */

const AXE = readFileSync(Bun.resolveSync('axe-core/axe.min.js', import.meta.dir), 'utf8')
/** Where pictures of the page are stored; undefined: nowhere. */
const PICTURES = process.env.PICTURES

describe.skipIf(chromium === null)('signing in to the dashboard (needs a Chromium)', () => {
  const backends = startBackends()
  let rig: PeopleRig
  let page: DashboardPage

  beforeAll(async () => {
    rig = await startPeople(backends.env)
    await rig.signedIn(EVE)
    page = await openDashboard(rig.publicUrl)
  })

  /** The provider recognizes the browser; somebody else needs one that it does not know. */
  const forgetProvider = () => page.send('Network.clearBrowserCookies')
  const signInAs = async (account: typeof ADA, hash = '#/overview') => {
    await forgetProvider()
    rig.provider.account = account
    await page.open(`${rig.publicUrl}/?again=${account.sub}${hash}`)
    await page.until(`document.querySelector('.prompt a.primary')`)
    await page.evaluate(`void document.querySelector('.prompt a.primary').click()`)
    await page.shows('.signed-in', account.name as string)
  }
  const picture = async (name: string) => {
    if (PICTURES === undefined) return
    for (const [theme, width] of [
      ['light', 1280],
      ['dark', 400],
    ] as const) {
      await page.send('Emulation.setDeviceMetricsOverride', { width, height: 900, deviceScaleFactor: 1, mobile: false })
      await page.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: theme }] })
      await Bun.sleep(300)
      const { data } = await page.send<{ data: string }>('Page.captureScreenshot', { format: 'png' })
      await Bun.write(`${PICTURES}/${name}-${theme}-${width}.png`, Buffer.from(data, 'base64'))
    }
    await page.send('Emulation.clearDeviceMetricsOverride')
  }
  const axe = async () => {
    const violations = `axe.run({ resultTypes: ['violations'] }).then(({ violations }) =>
      violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html).join(' ')))`
    return page.evaluate<string[]>(`(() => { ${AXE} })() ?? ${violations}`)
  }
  const pausedRun = async () => {
    const agent = await backends.agent(rig.service, [callTurn(['pay', { n: 7 }]), { text: 'paid' }], {
      name: 'payer',
      tools: [backends.tools.tool('pay', { requires_approval: true })],
    })
    const { data } = await agent.invoke()
    return { agentId: agent.agentId, runId: data.run_id as string }
  }

  test('the page offers to sign in, and a key as another way', async () => {
    await page.until(`document.querySelector('.prompt a.primary')`)
    expect(await page.text('.prompt a.primary')).toBe('Sign in')
    expect(await page.evaluate<boolean>(`document.querySelector('.prompt details').open`)).toBe(false)
    await picture('prompt')
    expect(await axe()).toEqual([])
    await page.evaluate(`void (document.querySelector('.prompt details').open = true)`)
    await picture('prompt-key')
    await page.signIn(rig.service.workspaceKey)
    await page.until(`document.querySelector('[aria-label="Forget key"]')`)
    await page.click('[aria-label="Forget key"]')
    await page.until(`document.querySelector('.prompt a.primary')`)
  })

  test('an approver signs in, comes back to the view, and decides in their own name', async () => {
    const { runId } = await pausedRun()
    await signInAs(BOB, '#/waiting')
    expect(await page.evaluate<string>('location.hash')).toBe('#/waiting')
    expect(await page.text('.signed-in .role')).toBe('approver')
    // The WebSocket opens with the cookie.
    await page.until(`document.querySelector('.health.good')`)
    await page.click('.pause-row [data-pause]')
    await page.until(`document.querySelector('.pause .decision')`)
    await picture('waiting-approver')
    await page.click('.pause button', 'Approve')
    await page.shows('.pause .verdict', 'bob@example.com')
    await page.go(`#/runs/${runId}`)
    await page.until(`document.querySelector('.run-head .status')?.textContent === 'completed'`)
  })

  test('a script sees nothing of the cookie', async () => {
    expect(await page.evaluate<string>('document.cookie')).toBe('')
    expect(await page.evaluate<string>('JSON.stringify([{ ...localStorage }, { ...sessionStorage }])')).not.toContain(
      'svc_',
    )
  })

  test('a viewer sees everything, and why controls are disabled', async () => {
    const { runId } = await pausedRun()
    await signInAs(EVE, '#/waiting')
    await page.click('.pause-row [data-pause]')
    await page.shows('.pause .hint', 'This needs the role approver. You are signed in as viewer.')
    expect(await page.evaluate<boolean>(`document.querySelector('.pause fieldset').disabled`)).toBe(true)
    await picture('waiting-viewer')
    expect(await axe()).toEqual([])
    await page.go(`#/runs/${runId}`)
    await page.until(`document.querySelector('.head-actions button')`)
    const cancel = `[...document.querySelectorAll('.head-actions button')].find((each) => each.textContent === 'Cancel')`
    expect(await page.evaluate<unknown>(`[${cancel}.disabled, ${cancel}.title]`)).toEqual([
      true,
      'This needs the role approver. You are signed in as viewer.',
    ])
    await page.go('#/keys')
    await page.until(`document.querySelector('.new-key button')?.disabled`)
    await page.go('#/sql')
    await page.until(`document.querySelector('.view')`)
    expect(await page.count('.prompt')).toBe(0)
  })

  test('an admin signs somebody out, who is back at the prompt at once', async () => {
    const eve = page
    const browser = await rig.signedIn(ADA)
    const { data } = await browser.call('GET', '/api/v1/people')
    const found = data.items.find(({ subject }: { subject: string }) => subject === EVE.sub)
    await browser.call('PATCH', `/api/v1/people/${found.person_id}`, { status: 'suspended' })
    await eve.shows('.prompt', 'Your sign-in has ended.')
    await eve.evaluate(`void document.querySelector('.prompt a.primary').click()`)
    await eve.shows('.prompt', 'Your access has been suspended.')
    expect(await eve.evaluate<string>('location.search')).toBe('')
    await picture('prompt-problem')
    await browser.call('PATCH', `/api/v1/people/${found.person_id}`, { status: 'active' })
  })

  test('an admin manages people in the page, and signs out', async () => {
    await signInAs(ADA, '#/keys')
    await page.shows('.people', 'Eve')
    await picture('keys-admin')
    expect(await axe()).toEqual([])
    const open = (name: string) =>
      page.evaluate(
        `void [...document.querySelectorAll('.people tr')].find((row) => row.textContent.includes('${name}')).querySelector('.row-actions button').click()`,
      )
    await open('Eve')
    await page.shows('dialog', 'Nowhere at the moment.')
    await page.click('dialog [aria-label="Close"]')
    await open('Ada')
    await page.shows('dialog', 'this browser')
    await picture('sign-ins')
    await page.click('dialog [aria-label="Close"]')
    await page.click('[aria-label="Sign out"]')
    await page.until(`document.querySelector('.prompt a.primary')`)
    expect(await page.text('.prompt-box > .problem')).toBe('')
    await page.open(`${rig.publicUrl}/?later#/keys`)
    await page.until(`document.querySelector('.prompt a.primary')`)
  })

  test('why nobody was signed in is said once', async () => {
    await page.open(`${rig.publicUrl}/?sign-in=unavailable#/runs`)
    await page.shows('.prompt-box > .problem', 'The identity provider does not respond as it should.')
    expect(await page.evaluate<string>('location.pathname + location.search + location.hash')).toBe('/#/runs')
    await page.open(`${rig.publicUrl}/?sign-in=<img src=x>#/runs`)
    await page.shows('.prompt-box > .problem', 'Nobody was signed in. Try again.')
  })
})
