import { beforeAll, expect, test } from 'bun:test'
import { createEnvelope } from '../../src/base/http/envelope.ts'
import { createLog } from '../../src/base/log.ts'
import { dashboardRoutes } from '../../src/dashboard/routes.ts'

/** The dashboard files as served to browsers. `test/browser` tests the page itself. */

const deps = { log: createLog('silent'), limits: { body_bytes: 1024 }, logRequests: false }
const app = createEnvelope(deps).use(dashboardRoutes())
const get = (path: string, headers: Record<string, string> = {}) =>
  app.handle(new Request(`http://localhost${path}`, { headers }))

let html: string
let assets: string[]

beforeAll(async () => {
  html = await (await get('/')).text()
  assets = [...html.matchAll(/(?:src|href)="(\/dashboard\/[^"]+)"/g)].map(([, path]) => path as string)
})

test('serves the page and its assets with their content types', async () => {
  const page = await get('/')
  expect(page.status).toBe(200)
  expect(page.headers.get('content-type')).toMatch(/^text\/html; ?charset=utf-8$/)
  expect(html).toContain('<!doctype html>')
  const types = await Promise.all(
    assets.map(async (path) => {
      const { status, headers } = await get(path)
      return `${status} ${path.split('.').pop()} ${headers.get('content-type')?.split(';')[0]}`
    }),
  )
  expect(types.toSorted()).toEqual(['200 css text/css', '200 js text/javascript', '200 svg image/svg+xml'])
})

test('files are bound to their origin by their headers; the page is revalidated, the assets are cached forever', async () => {
  for (const path of ['/', ...assets]) {
    const headers = Object.fromEntries((await get(path)).headers)
    const policy = headers['content-security-policy']
    expect(policy).toStartWith("default-src 'none'; ")
    expect(policy).not.toMatch(/unsafe|https?:|\*/)
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).toContain("require-trusted-types-for 'script'")
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      // The names of assets contain a hash of their content.
      'cache-control': path === '/' ? 'no-cache' : 'public, max-age=31536000, immutable',
    })
  }
})

test('the page has no inline script, style or handler, and the assets name no other host', async () => {
  expect(html).not.toMatch(/<script(?![^>]*\ssrc=)|<style|\son\w+=|\sstyle=/i)
  for (const path of assets) {
    const text = await (await get(path)).text()
    const hosts = [...text.matchAll(/https?:\/\/[\w.-]+/g)].map(([host]) => host)
    // Namespaces of XML, and where to report errors of the Markdown parser: neither is ever loaded.
    expect(hosts.filter((host) => host !== 'http://www.w3.org' && host !== 'https://github.com')).toEqual([])
    // Preact can set innerHTML; that the page never does is enforced by its policy on trusted types.
    expect(text).not.toMatch(/outerHTML|insertAdjacentHTML|document\.write/)
  }
})

test('answers 304 when the ETag matches', async () => {
  for (const path of ['/', ...assets]) {
    const etag = (await get(path)).headers.get('etag') ?? ''
    for (const known of [etag, `W/${etag}`, `"another", ${etag}`]) {
      const answer = await get(path, { 'if-none-match': known })
      expect(answer.status).toBe(304)
      expect(answer.headers.get('etag')).toBe(etag)
      expect(await answer.text()).toBe('')
    }
    expect((await get(path, { 'if-none-match': '"another"' })).status).toBe(200)
  }
})

test('compresses with the accepted encoding, with a separate ETag per encoding', async () => {
  const decompress = { gzip: Bun.gunzipSync, zstd: Bun.zstdDecompressSync }
  for (const path of ['/', ...assets]) {
    const plain = await get(path)
    const tags = new Set([plain.headers.get('etag')])
    const bytes = Buffer.from(await plain.arrayBuffer())
    for (const encoding of ['gzip', 'zstd'] as const) {
      const answer = await get(path, { 'accept-encoding': encoding })
      expect(answer.headers.get('content-encoding')).toBe(encoding)
      expect(answer.headers.get('vary')).toBe('accept-encoding')
      expect(bytes.equals(decompress[encoding](await answer.arrayBuffer()))).toBe(true)
      tags.add(answer.headers.get('etag'))
    }
    expect(tags.size).toBe(3)
  }
})

test('a missing asset, as after an upgrade, is NOT_FOUND in the envelope', async () => {
  const answer = await get('/dashboard/chunk-00000000.js')
  expect(answer.status).toBe(404)
  expect(await answer.json()).toMatchObject({ data: null, error: { code: 'NOT_FOUND', message: expect.any(String) } })
})

test('the first load is at most 110 KB compressed, and the SQL editor is not part of it', async () => {
  const load = async (path: string) => (await get(path, { 'accept-encoding': 'gzip' })).arrayBuffer()
  const sizes = await Promise.all(['/', ...assets].map(async (path) => (await load(path)).byteLength))
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(110_000)
  const [script = ''] = assets.filter((path) => path.endsWith('.js'))
  const text = await (await get(script)).text()
  // Files that it imports at once would be part of the first load.
  expect(text).not.toMatch(/(from|import)\s*"\/dashboard\//)
  const chunks = text.match(/\/dashboard\/chunk-\w+\.js/g)?.filter((path) => path !== script) ?? []
  expect(text).not.toContain('cm-scroller')
  const later = await Promise.all([...new Set(chunks)].map(async (path) => (await get(path)).text()))
  expect(later.filter((each) => each.includes('cm-scroller'))).toHaveLength(1)
})
