import { beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '../support/eventually.ts'
import { LiveSocket } from '../support/feeds.ts'
import { type OpenIdProvider, startOpenIdProvider } from '../support/openid-provider.ts'
import { ADA, Browser, EVE, signInVariables } from '../support/people.ts'
import { freePorts } from '../support/processes.ts'
import { type SpawnedService, spawnService } from '../support/service.ts'

/** Sign-ins with several processes behind one port, each of which caches them (docs/people.md). */

const CALLS = 24

describe('two workers', () => {
  let service: SpawnedService
  let provider: OpenIdProvider
  let publicUrl: string

  beforeAll(async () => {
    const [port] = freePorts(1)
    publicUrl = `http://localhost:${port}`
    provider = await startOpenIdProvider(publicUrl)
    service = await spawnService({
      PORT: `${port}`,
      WORKERS: '2',
      JOURNAL_PARTITIONS: '2',
      LOG_LEVEL: 'debug',
      ...signInVariables(provider.issuer, publicUrl),
    })
  })

  const signedIn = async (account: typeof ADA) => {
    provider.account = account
    const browser = new Browser(service.url, publicUrl)
    expect(await browser.signIn()).toBe('/')
    return browser
  }
  /** Each on a connection of its own, so that both workers answer some. */
  const statuses = (browser: Browser) =>
    Promise.all(
      Array.from({ length: CALLS }, () =>
        browser.call('GET', '/api/v1/runs', undefined, { connection: 'close' }).then(({ status }) => status),
      ),
    )

  test('know a sign-in at once, whichever of them began it', async () => {
    for (let round = 0; round < 3; round++) {
      const browser = await signedIn(ADA)
      expect(new Set(await statuses(browser))).toEqual(new Set([200]))
    }
  })

  test('refuse a sign-in on the very next request after it has ended, and close its feeds', async () => {
    const ada = await signedIn(ADA)
    for (let round = 0; round < 3; round++) {
      const eve = await signedIn(EVE)
      expect(new Set(await statuses(eve))).toEqual(new Set([200]))
      const sockets = await Promise.all(
        Array.from({ length: 6 }, () => LiveSocket.open({ ...service }, eve.feedOptions)),
      )
      const { person } = (await eve.call('GET', '/api/v1/sign-in')).data
      const path = `/api/v1/people/${person.person_id}`
      if (round === 0) expect((await eve.call('POST', '/api/v1/sign-out', {})).status).toBe(200)
      if (round === 1)
        expect((await ada.call('POST', `/api/v1/sign-ins/${person.sign_in_id}/revoke`, {})).status).toBe(200)
      if (round === 2) expect((await ada.call('PATCH', path, { status: 'suspended' })).status).toBe(200)
      expect(new Set(await statuses(eve))).toEqual(new Set([401]))
      for (const socket of sockets) expect((await socket.untilClosed()).code).toBe(4001)
    }
    expect(new Set(await statuses(ada))).toEqual(new Set([200]))
  })

  test('log no code, no token and no cookie', async () => {
    const browser = await signedIn(ADA)
    const token = browser.own.header.split('=')[1]!
    await browser.call('GET', '/api/v1/runs')
    const logged = () => service.output().stderr
    await eventually(() => logged().includes('a person has signed in'))
    expect(logged()).toContain('/auth/callback')
    expect(logged()).not.toContain(token)
    expect(logged()).not.toMatch(/svc_person_|code=|id_token|access_token|ada@example\.com/)
  })
})
