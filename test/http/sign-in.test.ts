import { describe, expect, test } from 'bun:test'
import { createServer } from 'node:http'
import { SIGN_IN_COOKIES } from '../../src/base/http/bearer.ts'
import { startOpenIdProvider } from '../support/openid-provider.ts'
import { ADA, BOB, EVE, startPeople } from '../support/people.ts'
import { startTestService } from '../support/service.ts'
import { shared } from '../support/teardown.ts'

/** Signing in by OpenID Connect at a real provider (docs/people.md). */

const rig = shared(() => startPeople())

describe('signing in', () => {
  test('goes to the provider with PKCE, state and nonce, and comes back to where it began', async () => {
    const { browser, provider, publicUrl } = await rig()
    provider.account = ADA
    const own = browser()
    const { location, response } = await own.visit(`${publicUrl}/auth/sign-in?to=${encodeURIComponent('#/runs?tag=a')}`)
    expect(response.status).toBe(303)
    expect(response.headers.get('cache-control')).toBe('no-store')
    const asked = new URL(location)
    expect(asked.origin).toBe(provider.issuer)
    expect(Object.fromEntries(asked.searchParams)).toMatchObject({
      response_type: 'code',
      scope: 'openid profile email',
      code_challenge_method: 'S256',
      redirect_uri: `${publicUrl}/auth/callback`,
    })
    for (const name of ['state', 'nonce', 'code_challenge'])
      expect(asked.searchParams.get(name)?.length).toBeGreaterThan(40)
    const end = await own.visit(await own.follow(location, '/auth/callback'))
    expect(end.location).toBe(`${publicUrl}/#/runs?tag=a`)
  })

  test('gives a cookie that scripts cannot read, and that says who is signed in', async () => {
    const { browser, provider, publicUrl, service } = await rig()
    provider.account = ADA
    const own = browser()
    const { response } = await own.visit(await own.atCallback())
    const cookie = response.headers.getSetCookie().find((each) => each.startsWith(SIGN_IN_COOKIES.plain))
    expect(cookie).toMatch(
      /^agent-run-session=svc_person_[0-9A-Za-z]{49}; Path=\/; Max-Age=43\d{3}; HttpOnly; SameSite=Lax$/,
    )
    expect(response.headers.getSetCookie()).toContainEqual(
      'agent-run-sign-in=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax',
    )
    const { data } = await own.call('GET', '/api/v1/sign-in')
    expect(data).toMatchObject({
      openid: true,
      keys: true,
      person: { name: ADA.name, email: ADA.email, role: 'admin', workspace: { name: 'default' } },
    })
    expect((await browser().call('GET', '/api/v1/sign-in')).data).toEqual({ openid: true, keys: true, person: null })
    // The token is refused outside of its cookie.
    const token = own.own.get(SIGN_IN_COOKIES.plain)!
    const asKey = await service.api('GET', '/api/v1/runs', undefined, { key: token })
    expect([asKey.status, asKey.error?.code]).toEqual([401, 'UNAUTHENTICATED'])
    const inUrl = await service.api('GET', `/api/v1/stream?token=${token}`, undefined, { key: null })
    expect(inUrl.status).toBe(401)
    expect(publicUrl).toStartWith('http://localhost:')
  })

  test('a return address outside of the page is ignored', async () => {
    const { browser, provider } = await rig()
    provider.account = ADA
    for (const to of ['https://evil.example/', '//evil.example', '#evil', `#/${'a'.repeat(2_000)}`])
      expect(await browser().signIn(to)).toBe('/')
  })

  test('over https the cookie is secure and has the __Host- prefix', async () => {
    const { browser, provider } = await startPeople({ PUBLIC_URL: 'https://agents.example' })
    provider.account = ADA
    const own = browser()
    const { response } = await own.visit(await own.atCallback())
    const cookie = response.headers.getSetCookie().find((each) => each.startsWith(SIGN_IN_COOKIES.secure))
    expect(cookie).toMatch(
      /^__Host-agent-run-session=svc_person_\w+; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax; Secure$/,
    )
    expect((await own.call('GET', '/api/v1/sign-in')).data.person.role).toBe('admin')
    // Another host of the domain could have set this cookie.
    const planted = `${SIGN_IN_COOKIES.plain}=${own.own.get(SIGN_IN_COOKIES.secure)}`
    const fromPlanted = await browser().call('GET', '/api/v1/runs', undefined, { cookie: planted })
    expect(fromPlanted.status).toBe(401)
  })

  test('signing in again ends the earlier sign-in of the browser', async () => {
    const { signedIn } = await rig()
    const own = await signedIn(ADA)
    const earlier = own.own.header
    expect(await own.signIn()).toBe('/')
    expect((await own.call('GET', '/api/v1/runs')).status).toBe(200)
    expect((await own.call('GET', '/api/v1/runs', undefined, { cookie: earlier })).status).toBe(401)
  })

  test('the claim of roles may be nested or an object, and is mapped to roles', async () => {
    const { signedIn, browser, provider } = await startPeople({
      OIDC_OPTIONS: '{"role_claim": "groups.agents", "roles": {"sre": "admin", "support": "approver"}}',
    })
    const roleOf = async (groups: unknown) => {
      const own = await signedIn({ sub: crypto.randomUUID(), groups })
      return (await own.call('GET', '/api/v1/sign-in')).data.person.role
    }
    expect(await roleOf({ agents: ['support', 'sre'] })).toBe('admin')
    expect(await roleOf({ agents: { support: { org: 1 } } })).toBe('approver')
    provider.account = { sub: 'nobody', groups: { agents: ['admin'] } }
    expect(await browser().signIn('#/runs')).toBe('/?sign-in=no_role#/runs')
  })

  test('everyone may be given a role, and the page may take no keys', async () => {
    const { signedIn } = await startPeople({
      OIDC_OPTIONS: '{"roles": {"*": "viewer", "sre": "admin"}, "page_keys": false}',
    })
    const own = await signedIn({ sub: 'somebody' })
    expect((await own.call('GET', '/api/v1/sign-in')).data.keys).toBe(false)
    expect((await own.call('GET', '/api/v1/sign-in')).data.person).toMatchObject({
      role: 'viewer',
      name: null,
      email: null,
    })
  })
})

describe('refusals', () => {
  test('a state that the service cannot have made is not remembered', async () => {
    const { provider, publicUrl } = await rig()
    const state = 'a'.repeat(5_000)
    const before = provider.requests.length
    const response = await fetch(`${publicUrl}/auth/callback?code=a&state=${state}`, {
      redirect: 'manual',
      headers: { cookie: `agent-run-sign-in=${state}.b.c.` },
    })
    expect(response.headers.get('location')).toBe('/?sign-in=expired')
    expect(provider.requests.length).toBe(before)
  })

  test('a callback without an attempt, or with the state of another, signs nobody in', async () => {
    const { browser, provider, publicUrl } = await rig()
    provider.account = ADA
    const [victim, attacker] = [browser(), browser()]
    const callback = await attacker.atCallback()
    const spent = provider.requests.filter((each) => each === 'POST /token').length
    // The attacker's code in the victim's browser: signed in as the attacker without noticing.
    expect((await victim.visit(callback)).location).toBe(`${publicUrl}/?sign-in=expired`)
    await victim.atCallback()
    const { location, response } = await victim.visit(callback)
    expect(location).toBe(`${publicUrl}/?sign-in=expired`)
    expect(response.headers.getSetCookie().some((each) => each.includes('svc_person_'))).toBe(false)
    expect(provider.requests.filter((each) => each === 'POST /token')).toHaveLength(spent)
  })

  test('a code works once, and only with the verifier of its attempt', async () => {
    const { browser, provider, publicUrl } = await rig()
    provider.account = ADA
    const own = browser()
    const callback = await own.atCallback()
    const attempt = own.own.get('agent-run-sign-in')!
    const [state, nonce, , to] = attempt.split('.')
    const forged = [state, nonce, 'v'.repeat(43), to].join('.')
    const visit = (cookie: string) =>
      fetch(callback.replace(publicUrl, rigUrl), {
        redirect: 'manual',
        headers: { cookie: `agent-run-sign-in=${cookie}` },
      })
    const rigUrl = (await rig()).service.url
    expect((await visit(forged)).headers.get('location')).toBe('/?sign-in=expired')
    const other = browser()
    const again = await other.atCallback()
    const kept = other.own.get('agent-run-sign-in')!
    expect((await other.visit(again)).location).toBe(`${publicUrl}/`)
    const replayed = await fetch(again.replace(publicUrl, rigUrl), {
      redirect: 'manual',
      headers: { cookie: `agent-run-sign-in=${kept}` },
    })
    expect(replayed.headers.get('location')).toBe('/?sign-in=expired')
  })

  test('a code that has expired', async () => {
    const { browser, provider } = await startPeople({}, { provider: { ttl: { AuthorizationCode: 1 } } })
    provider.account = ADA
    const own = browser()
    const callback = await own.atCallback()
    await Bun.sleep(1_500)
    expect((await own.visit(callback)).location).toEndWith('/?sign-in=expired')
  })

  test('an ID token with a wrong nonce, issuer, audience or signature, or one that has expired', async () => {
    const { browser, provider } = await startPeople()
    provider.account = ADA
    const withClaims = async (change: (claims: Record<string, unknown>) => object) => {
      provider.tamper = (path, body) => {
        if (path !== '/token') return body
        const answer = JSON.parse(body)
        const [head, payload, signature] = answer.id_token.split('.')
        const claims = JSON.parse(Buffer.from(payload, 'base64url').toString())
        const changed = Buffer.from(JSON.stringify({ ...claims, ...change(claims) })).toString('base64url')
        return JSON.stringify({ ...answer, id_token: [head, changed, signature].join('.') })
      }
      return browser().signIn()
    }
    const failed = '/?sign-in=failed'
    expect(await withClaims(() => ({ nonce: 'another' }))).toBe(failed)
    expect(await withClaims(() => ({ iss: 'https://other.example' }))).toBe(failed)
    expect(await withClaims(() => ({ aud: 'another-client' }))).toBe(failed)
    expect(await withClaims(() => ({ exp: 1_000 }))).toBe(failed)
    // All that the client checks is right, but the provider has not signed it.
    expect(await withClaims(() => ({ roles: ['admin'], sub: 'somebody-else' }))).toBe(failed)
    provider.tamper = (_path, body) => body
    expect(await browser().signIn()).toBe('/')
  })

  test('an answer of another issuer, and a person who refuses', async () => {
    const { browser, provider, publicUrl } = await rig()
    provider.account = ADA
    const own = browser()
    const callback = new URL(await own.atCallback())
    callback.searchParams.set('iss', 'https://other.example')
    expect((await own.visit(callback.href)).location).toBe(`${publicUrl}/?sign-in=failed`)
    provider.account = null
    expect(await browser().signIn()).toBe('/?sign-in=refused')
  })

  test('user info about somebody else', async () => {
    const { browser, provider } = await startPeople()
    provider.account = EVE
    provider.tamper = (path, body) => (path === '/me' ? body.replaceAll('eve', 'ada') : body)
    expect(await browser().signIn()).toBe('/?sign-in=failed')
  })

  test('sign-ins that fail keep nobody else behind the same address out; an attempt asks the provider once', async () => {
    const { browser, provider, publicUrl } = await startPeople()
    let asked = 0
    provider.tamper = (path, body) => {
      if (path === '/token') asked++
      return body
    }
    const own = browser()
    provider.account = { sub: 'nobody' }
    for (let i = 0; i < 40; i++) expect(await own.signIn()).toBe('/?sign-in=no_role')
    expect(asked).toBe(40)
    // The browser sends the same callback again, with the cookie that it had.
    const callback = await own.atCallback()
    const again = own.own.get('agent-run-sign-in')!
    expect((await own.visit(callback)).location).toBe(`${publicUrl}/?sign-in=no_role`)
    own.own.take(new Headers({ 'set-cookie': `agent-run-sign-in=${again}` }))
    expect((await own.visit(callback)).location).toBe(`${publicUrl}/?sign-in=expired`)
    expect(asked).toBe(41)
    provider.account = BOB
    expect(await browser().signIn()).toBe('/')
  })

  test('a role claim that is false or null gives no role', async () => {
    const { browser, provider } = await startPeople()
    provider.account = { sub: 'flags', roles: { admin: false, approver: null } }
    expect(await browser().signIn()).toBe('/?sign-in=no_role')
    provider.account = { sub: 'flags', roles: { admin: false, viewer: true } }
    const own = browser()
    expect(await own.signIn()).toBe('/')
  })
})

describe('a provider that is down', () => {
  test('does not keep the service from starting; people can sign in once it is back, and stay signed in without it', async () => {
    const { browser, provider, signedIn, service } = await startPeople()
    provider.account = BOB
    await provider.stop()
    const began = performance.now()
    const ends = await Promise.all([browser().signIn(), browser().signIn('#/waiting')].map((end) => end.catch(String)))
    expect(ends).toEqual(['/?sign-in=unavailable', '/?sign-in=unavailable#/waiting'])
    expect(performance.now() - began).toBeLessThan(10_000)
    expect((await service.api('GET', '/api/v1/runs')).status).toBe(200)
    await provider.start()
    await Bun.sleep(2_100)
    const own = await signedIn(BOB)
    await provider.stop()
    expect((await own.call('GET', '/api/v1/runs')).status).toBe(200)
    await provider.start()
  })

  test('that never answers is given up', async () => {
    const server = createServer(() => {})
    await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve))
    const { port } = server.address() as { port: number }
    const { browser } = await startPeople({ OIDC_ISSUER: `http://localhost:${port}` })
    const began = performance.now()
    expect(await browser().signIn()).toBe('/?sign-in=unavailable')
    expect(performance.now() - began).toBeLessThan(15_000)
    server.closeAllConnections()
    server.close()
  }, 30_000)

  test('that describes another issuer is not trusted', async () => {
    const provider = await startOpenIdProvider('http://localhost:1')
    const { browser } = await startPeople({ OIDC_ISSUER: provider.issuer.replace('localhost', '127.0.0.1') })
    expect(await browser().signIn()).toBe('/?sign-in=unavailable')
  })
})

describe('without the variables', () => {
  test('nobody can sign in, and a cookie means nothing', async () => {
    const { signedIn } = await rig()
    const { url } = await startTestService()
    const own = await signedIn(ADA)
    const get = (path: string) => fetch(url + path, { redirect: 'manual', headers: { cookie: own.own.header } })
    expect((await get('/auth/sign-in')).status).toBe(404)
    expect((await get('/auth/callback?code=a&state=b')).status).toBe(404)
    expect((await get('/api/v1/runs')).status).toBe(401)
    const state = (await (await get('/api/v1/sign-in')).json()) as { data: unknown }
    expect(state.data).toEqual({ openid: false, keys: true, person: null })
  })
})
