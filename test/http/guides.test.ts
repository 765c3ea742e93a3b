import { expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { createEnvelope } from '../../src/base/http/envelope.ts'
import { createLog } from '../../src/base/log.ts'
import { doors } from '../../src/openapi/doors.ts'
import { guideRoutes } from '../../src/openapi/guide-routes.ts'
import { guides, guideText, UNSERVED } from '../../src/openapi/guides.ts'
import { welcome } from '../../src/service/welcome.ts'
import { atEnd } from '../support/teardown.ts'

/** The guides and the ways in, as the running service serves and prints them (docs/api.md#calls-without-a-key). */

const URL_OF_SERVICE = 'http://127.0.0.1:3000'
const KEY = 'svc_ws_secret'
const started = { url: URL_OF_SERVICE, isFirstStart: true, freshKey: KEY, isKeyIgnored: false }

const deps = { log: createLog('silent'), limits: { body_bytes: 1024 }, logRequests: false }
const app = createEnvelope(deps).use(guideRoutes({ publicUrl: undefined }))
app.listen({ port: 0, hostname: '127.0.0.1' })
atEnd(() => app.stop(true))
const origin = `http://127.0.0.1:${app.server?.port}`
const get = (path: string, init: RequestInit = {}) => fetch(`${origin}${path}`, init)

test('every guide of the folder is served, or excluded by name', () => {
  const files = readdirSync(join(import.meta.dir, '..', '..', 'docs')).filter((name) => name.endsWith('.md'))
  const expected = files.filter((name) => !UNSERVED.includes(`docs/${name}`))
  expect(
    guides()
      .map(({ name }) => name)
      .sort(),
  ).toEqual(['README.md', ...expected].sort())
})

test('/llms.txt has the ways in, and a line for each guide whose link works', async () => {
  const answer = await get('/llms.txt')
  const text = await answer.text()
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8'])
  expect(text).toMatch(/^# Agent Run Service\n\n> .+\n/)
  for (const door of doors({ url: origin })) expect(text).toContain(door.text)
  const links = [...text.matchAll(/^- \[[^\]]+\]\(([^)]+)\): \S.*$/gm)].map(([, url = '']) => url)
  expect(links.sort()).toEqual(['/docs/json', ...guides().map(({ path }) => path)].map((path) => origin + path).sort())
  for (const url of links.filter((each) => each.endsWith('.md'))) expect((await fetch(url)).status).toBe(200)
})

test('guide and README name the same variables for Langfuse as the start: an SDK without its own calls the cloud', () => {
  const lines = doors({ url: URL_OF_SERVICE }).find(({ name }) => name === 'Langfuse SDK')?.text ?? ''
  const assigned = lines.match(/LANGFUSE_\w+=\S+/g) ?? []
  const names = assigned.map((each) => each.split('=')[0])
  expect(names).toEqual(expect.arrayContaining(['LANGFUSE_BASE_URL', 'LANGFUSE_BASEURL', 'LANGFUSE_HOST']))
  expect(guideText({ name: 'langfuse.md' })).toContain(assigned.join('\n'))
  for (const each of assigned) expect(guideText({ name: 'README.md' })).toContain(`\`${each}\``)
})

test('the links of /llms.txt begin with PUBLIC_URL where it is set', async () => {
  const named = createEnvelope(deps).use(guideRoutes({ publicUrl: 'https://runs.example.com' }))
  const text = await (await named.handle(new Request('http://localhost/llms.txt'))).text()
  expect(text).toContain('(https://runs.example.com/docs/sql.md)')
  expect(text).not.toContain('localhost')
})

test('guides are Markdown with an ETag, also for HEAD, and compressed on request', async () => {
  for (const { path, name } of guides()) {
    const { status, headers } = await get(path, { method: 'HEAD' })
    const etag = headers.get('etag') ?? ''
    expect([status, headers.get('content-type')]).toEqual([200, 'text/markdown; charset=utf-8'])
    expect(headers.get('cache-control')).toBe('no-cache')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    const encoded = await get(path)
    expect(encoded.headers.get('content-encoding')).not.toBeNull()
    expect(await encoded.text()).toBe(guideText({ name }))
    const again = await get(path, { headers: { 'if-none-match': encoded.headers.get('etag') ?? '' } })
    expect([again.status, await again.text()]).toEqual([304, ''])
    expect(etag).not.toBe('')
  }
})

test('links between guides, with their anchors, work as served; there are none to what is not served', () => {
  const served = new Map(guides().map(({ name }) => [name, anchorsOf(guideText({ name }))]))
  const links = guides().flatMap(({ name }) => linksOf(guideText({ name })).map((link) => ({ name, link })))
  const dead = links.filter(({ name, link }) => {
    const [target = '', anchor] = link.split('#')
    const anchors = served.get(target === '' ? name : target)
    return anchors === undefined || (anchor !== undefined && !anchors.includes(anchor))
  })
  expect(links.length).toBeGreaterThan(100)
  expect(dead).toEqual([])
})

test.each(['/docs/contributing.md', '/docs/%2e%2e/package.json', '/docs/..%2fpackage.json', '/docs/Sql'])(
  'nothing else is served: %s',
  async (path) => {
    expect((await get(path)).status).toBe(404)
  },
)

test('a new key is printed with the address first, and complete in each way in that works with it', () => {
  const text = welcome(started, { dataDir: './data' })
  expect(text.split('\n').findIndex((line) => line.includes(`keep it): ${KEY}`))).toBeLessThan(6)
  for (const door of doors({ url: URL_OF_SERVICE, key: KEY }))
    for (const line of door.text.split('\n')) expect(text).toContain(line)
  // An agent's key for the client does not exist yet.
  expect(doors({ url: URL_OF_SERVICE, key: KEY }).filter((door) => !door.text.includes(KEY))).toHaveLength(1)
})

test.each([{ isFirstStart: false }, { isFirstStart: true }])(
  'without a new key, the start names one address: %p',
  (given) => {
    const text = welcome({ ...started, ...given, freshKey: null }, { dataDir: './data' })
    expect(text).toContain(`guides:    ${URL_OF_SERVICE}/llms.txt`)
    expect(text).not.toMatch(/export|svc_/)
  },
)

test('with the key of an agent, the client needs nothing else', () => {
  const client = doors({ url: URL_OF_SERVICE, key: 'svc_agent_1', agentId: 'an-agent' }).at(-1)
  expect(client?.text).not.toContain('…')
  expect(client?.text).toContain('AGENT_RUN_AGENT_ID=an-agent')
})

test('the configuration for MCP is JSON, and the lines for a shell are what a shell reads', async () => {
  for (const { language, text } of doors({ url: URL_OF_SERVICE, key: KEY, agentId: 'an-agent' })) {
    if (language === 'json') expect(JSON.parse(text).mcpServers['agent-run-service'].url).toBe(`${URL_OF_SERVICE}/mcp`)
    if (language !== 'sh') continue
    const shell = Bun.spawn(['sh', '-euc', `${text}\nenv`], { env: { PATH: process.env.PATH ?? '' } })
    expect(await new Response(shell.stdout).text()).toMatch(new RegExp(`(=|%20)${KEY}$`, 'm'))
  }
})

function linksOf(text: string): string[] {
  const prose = text.replaceAll(/^ *```[\s\S]*?^ *```$/gm, '')
  return [...prose.matchAll(/\]\((?!https?:)([^)\s]*)\)/g)].map(([, target = '']) => target)
}

/** The anchors that renderers make of headings. */
function anchorsOf(text: string): string[] {
  const prose = text.replaceAll(/^ *```[\s\S]*?^ *```$/gm, '')
  return [...prose.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\s-]/g, '')
      .replaceAll(' ', '-'),
  )
}
