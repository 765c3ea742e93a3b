import { describe, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createEnvelope } from '../../src/base/http/envelope.ts'
import { mint } from '../../src/base/ids.ts'
import { createLog } from '../../src/base/log.ts'
import { eraseState, tablesHolding } from '../../src/service/retention/erase-state.ts'
import { unavailableOf } from '../../src/stores/postgres/connect.ts'
import { redactor } from '../../src/tenants/secrets/redact.ts'
import { secretRoutes } from '../../src/tenants/secrets/routes.ts'
import { HeadersNotFilled, SECRETS_MAX, SecretStore } from '../../src/tenants/secrets/store.ts'
import { createVault, parseSecretsKey } from '../../src/tenants/secrets/vault.ts'
import { pagesOf } from '../support/api.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'
import { authApp, OPERATOR_TOKEN, verdict } from './auth-app.ts'

/** Secrets of workspaces (docs/hosted-agents.md#secrets): write-only, encrypted, erased with their workspace. */

const PATH = '/api/v1/secrets'
const VALUE = 'sk-live_4eC39HqLyjWDarjtT1zdp7dc/+=&"\\ü'
const auth = await authApp()
const { sql, clock, owner } = auth
const dataDir = await temporaryDirectory()
const vault = createVault({ key: undefined, dataDir })
const secrets = new SecretStore({ sql, clock, vault })
const logged: string[] = []
const base = startRoutes()
const seen: string[] = []

/** The secret routes behind the guards of the service, with debug logs captured. */
function startRoutes(): string {
  const log = createLog('debug', (line) => void logged.push(line))
  const limits = { body_bytes: 1 << 20, json_depth: 64 }
  const app = createEnvelope({ log, limits, unavailableOf, logRequests: true })
    .use(secretRoutes({ guards: auth.guards, secrets }))
    .listen({ port: 0, hostname: '127.0.0.1' })
  atEnd(() => app.stop(true))
  return `http://127.0.0.1:${app.server!.port}`
}

/** Records every response with its headers. */
async function call(method: string, path: string, body?: unknown, key = owner.key) {
  const response = await fetch(`${base}${PATH}${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  seen.push(JSON.stringify([...response.headers]), text)
  return { status: response.status, headers: response.headers, text, ...JSON.parse(text) }
}

const put = (name: string, value: unknown, key?: string) => call('PUT', `/${name}`, { value }, key)

async function filled(header: string, workspaceId = owner.workspaceId, from = secrets) {
  return from.fill(workspaceId, { authorization: header })
}

async function missing(work: Promise<unknown>): Promise<string> {
  const error = await work.catch((each: unknown) => each)
  expect(error).toBeInstanceOf(HeadersNotFilled)
  return (error as Error).message
}

describe('a secret', () => {
  test('can be set, replaced, listed by name and deleted; a deleted secret is no longer filled in', async () => {
    const made = await put('API_KEY', VALUE)
    expect(made.status).toBe(200)
    const { created_at } = made.data
    expect(made.data).toEqual({ name: 'API_KEY', version: 1, created_at, updated_at: created_at })
    expect((await filled('Bearer {{secret:API_KEY}}')).headers).toEqual({ authorization: `Bearer ${VALUE}` })
    clock.aheadMs += 1_000
    const again = await put('API_KEY', 'another value')
    expect(again.data.created_at).toBe(created_at)
    expect(again.data.updated_at > made.data.updated_at).toBe(true)
    expect((await filled('{{secret:API_KEY}}')).headers.authorization).toBe('another value')
    expect((await call('GET', '')).data).toEqual({ items: [again.data], next_cursor: null })
    expect((await call('DELETE', '/API_KEY')).data).toEqual({ name: 'API_KEY', deleted: true })
    expect(verdict(await call('DELETE', '/API_KEY'))).toBe('404 NOT_FOUND')
    expect(await missing(filled('{{secret:API_KEY}}'))).toBe(
      'secret API_KEY does not exist: PUT /api/v1/secrets/API_KEY',
    )
  })

  test('cannot be read over HTTP', async () => {
    await put('HIDDEN', VALUE)
    expect((await call('GET', '/HIDDEN')).status).toBe(405)
    expect((await call('POST', '/HIDDEN', {})).status).toBe(405)
    expect((await call('GET', '')).text).not.toContain(VALUE)
  })

  test('belongs to one workspace', async () => {
    await put('SHARED_NAME', 'mine-of-the-owner')
    const other = await auth.newWorkspace()
    expect((await call('GET', '', undefined, other.key)).data.items).toEqual([])
    expect(verdict(await call('DELETE', '/SHARED_NAME', undefined, other.key))).toBe('404 NOT_FOUND')
    await missing(filled('{{secret:SHARED_NAME}}', other.workspaceId))
    await put('SHARED_NAME', 'theirs', other.key)
    expect((await filled('{{secret:SHARED_NAME}}')).headers.authorization).toBe('mine-of-the-owner')
    expect((await filled('{{secret:SHARED_NAME}}', other.workspaceId)).headers.authorization).toBe('theirs')
  })

  test('requires a workspace key', async () => {
    const { key } = await auth.newAgentKey(await auth.newAgent())
    expect(verdict(await put('NAME', 'value', key))).toBe('403 FORBIDDEN')
    expect(verdict(await call('GET', '', undefined, key))).toBe('403 FORBIDDEN')
    expect(verdict(await call('GET', '', undefined, OPERATOR_TOKEN))).toBe('401 UNAUTHENTICATED')
  })

  test.each(['lower', '1NAME', '_NAME', 'NA-ME', 'NA%20ME', 'A'.repeat(65), 'N%C3%84ME', 'NAME.'])(
    'rejects the name %s',
    async (name) => {
      for (const answer of [await put(name, 'value'), await call('DELETE', `/${name}`)]) {
        expect(verdict(answer)).toBe('400 VALIDATION_ERROR')
        expect(answer.error.message).toStartWith('path.name: expected at most 64 capital letters, digits and "_"')
      }
    },
  )

  test.each([
    ['abc', 'expected 4 to 8192 characters; got 3'],
    ['x'.repeat(8_193), 'expected 4 to 8192 characters; got 8193'],
    [`${VALUE}\n`, 'one line'],
    [`${VALUE}\r\nx-evil: 1`, 'one line'],
    [`${VALUE}\0`, 'one line'],
    [`${VALUE}€`, 'characters up to U+00FF'],
    [` ${VALUE}`, 'no space at the beginning or the end'],
    [`${VALUE}\t`, 'no space at the beginning or the end'],
    [12345678, 'expected a string'],
    [null, 'expected a string'],
    [{ a: VALUE }, 'expected a string'],
  ])('rejects the value %p without repeating it in the error', async (value, problem) => {
    const answer = await put('REFUSED', value)
    expect(verdict(answer)).toBe('400 VALIDATION_ERROR')
    expect(answer.error.message).toStartWith('value: ')
    expect(answer.error.message).toContain(problem)
    expect(answer.text).not.toContain(typeof value === 'string' ? value.trim() : VALUE)
  })

  test('requires a value and no other field', async () => {
    expect((await call('PUT', '/NAME', {})).error.message).toBe('value: required')
    expect((await call('PUT', '/NAME', { value: VALUE, key: 1 })).error.message).toContain('key: unknown field')
    expect(verdict(await call('PUT', '/NAME', `{"value":"${'x'.repeat(10)}`))).toBe('400 VALIDATION_ERROR')
  })

  test('can hold every character that a header can', async () => {
    const value = String.fromCharCode(...Array.from({ length: 94 }, (_, i) => 33 + i), 9, 32, 128, 255)
    await put('ALL', value)
    expect((await filled('{{secret:ALL}}')).headers.authorization).toBe(value)
  })

  test(`is limited to ${SECRETS_MAX} per workspace; existing ones can still be replaced at the limit`, async () => {
    const { key, workspaceId } = await auth.newWorkspace()
    await sql`
      insert into secrets (workspace_id, name, sealed, key_id, created_at, updated_at)
      select ${workspaceId}, 'S' || i, '', '', now(), now() from generate_series(2, ${SECRETS_MAX}) i`
    // Opens all connections of the pool, so that the calls run concurrently.
    await Promise.all(Array.from({ length: 8 }, () => sql`select pg_sleep(0.02)`))
    const racing = await Promise.all(Array.from({ length: 12 }, (_, i) => put(`RACE_${i}`, 'value', key)))
    expect(racing.map(verdict).sort()).toEqual(['200', ...Array(11).fill('409 CONFLICT')])
    expect((await put('S2', 'value', key)).status).toBe(200)
  })
})

test('lists newest first, in pages', async () => {
  const { key } = await auth.newWorkspace()
  const names = ['B_FIRST', 'A_SECOND', 'C_THIRD', 'E_SAME', 'D_SAME']
  for (const name of names) {
    if (!name.endsWith('SAME')) clock.aheadMs += 1_000
    await put(name, 'value', key)
  }
  await put('B_FIRST', 'changed', key)
  const pages = await pagesOf<{ name: string }>((cursor) => call('GET', `?limit=2${cursor}`, undefined, key))
  const found = pages.flat().map(({ name }) => name)
  expect(found.slice(2)).toEqual(['C_THIRD', 'A_SECOND', 'B_FIRST'])
  expect(found.slice(0, 2).sort()).toEqual(['D_SAME', 'E_SAME'])
  expect(verdict(await call('GET', '?cursor=nonsense', undefined, key))).toBe('400 VALIDATION_ERROR')
})

describe('a placeholder', () => {
  test('can appear anywhere in a header value, several times', async () => {
    await Promise.all([put('USER_NAME', 'alice'), put('PASS', 'wonderland')])
    const { headers } = await secrets.fill(owner.workspaceId, {
      'x-both': '{{secret:USER_NAME}}:{{ secret:PASS }} {{secret:PASS}}',
      'x-none': '{{NAME}} {secret:PASS} $1 $&',
    })
    expect(headers).toEqual({ 'x-both': 'alice:wonderland wonderland', 'x-none': '{{NAME}} {secret:PASS} $1 $&' })
  })

  test('cannot make a header longer than the limit', async () => {
    await put('LONG', 'x'.repeat(8_192))
    expect((await filled(`${'y'.repeat(7_986)}{{secret:LONG}}`)).headers.authorization).toHaveLength(16_178)
    expect(await missing(filled('{{secret:LONG}}'.repeat(500)))).toBe(
      'header authorization, its secrets filled in, may have at most 16384 characters',
    )
  })

  test('is filled once: placeholders and $ patterns in a value are not expanded', async () => {
    await put('OUTER', '{{secret:PASS}}$&$1')
    expect((await filled('x{{secret:OUTER}}')).headers.authorization).toBe('x{{secret:PASS}}$&$1')
  })

  test.each(['UNKNOWN', 'lower', 'API-KEY', ''])('with an unknown name (%p) is an error naming it', async (name) => {
    expect(await missing(filled(`Bearer {{secret:${name}}}`))).toContain(`secret ${name} does not exist`)
  })

  test('without placeholders there is no database query', async () => {
    const offline = new SecretStore({ sql: undefined as never, clock, vault })
    const { headers, redact } = await filled('Bearer plain', owner.workspaceId, offline)
    expect(headers).toEqual({ authorization: 'Bearer plain' })
    expect(redact('Bearer plain')).toBe('Bearer plain')
  })
})

describe('at rest', () => {
  test('a value is encrypted: equal values have different ciphertexts', async () => {
    await Promise.all([put('FIRST_COPY', VALUE), put('SECOND_COPY', VALUE)])
    const rows = await sql<{ name: string; sealed: Uint8Array }[]>`
      select name, sealed, secrets::text as whole from secrets where name like '%COPY'`
    expect(rows).toHaveLength(2)
    expect(Buffer.compare(rows[0].sealed, rows[1].sealed)).not.toBe(0)
    for (const form of [VALUE, Buffer.from(VALUE).toString('hex'), Buffer.from(VALUE).toString('base64')])
      expect(JSON.stringify(rows)).not.toContain(form)
  })

  test('a moved, renamed or modified row cannot be decrypted', async () => {
    const other = await auth.newWorkspace()
    await put('ORIGINAL', VALUE)
    await sql`
      insert into secrets select ${other.workspaceId}, name, sealed, key_id, created_at, updated_at from secrets
      where workspace_id = ${owner.workspaceId} and name = 'ORIGINAL'`
    await sql`
      insert into secrets select workspace_id, 'RENAMED', sealed, key_id, created_at, updated_at from secrets
      where workspace_id = ${owner.workspaceId} and name = 'ORIGINAL'`
    const problem = 'was sealed with another SECRETS_KEY'
    expect(await missing(filled('{{secret:ORIGINAL}}', other.workspaceId))).toContain(problem)
    expect(await missing(filled('{{secret:RENAMED}}'))).toContain(problem)
    expect((await filled('{{secret:ORIGINAL}}')).headers.authorization).toBe(VALUE)
    await sql`
      update secrets set sealed = set_byte(sealed, 40, get_byte(sealed, 40) # 1)
      where workspace_id = ${owner.workspaceId} and name = 'ORIGINAL'`
    expect(await missing(filled('{{secret:ORIGINAL}}'))).toContain(problem)
    await sql`update secrets set sealed = 'x' where name = 'ORIGINAL'`
    expect(await missing(filled('{{secret:ORIGINAL}}'))).toContain(problem)
  })

  test('erasing a workspace deletes its secrets', async () => {
    const { workspaceId, key } = await auth.newWorkspace()
    await put('DOOMED', VALUE, key)
    expect(await tablesHolding(sql, workspaceId)).toContain('secrets')
    await sql`update workspaces set status = 'suspended', is_erasing = true where workspace_id = ${workspaceId}`
    await sql`insert into erasures (workspace_id, requested_at) values (${workspaceId}, now())`
    await eraseState(sql, workspaceId)
    expect(await tablesHolding(sql, workspaceId)).toEqual([])
  })
})

describe('SECRETS_KEY', () => {
  const place = { workspaceId: mint.uuid(), name: 'NAME' }

  test('accepts base64 or hexadecimal digits only, and the error does not repeat the value', () => {
    const bytes = randomBytes(32)
    for (const text of [bytes.toString('base64'), bytes.toString('base64url'), bytes.toString('hex').toUpperCase()])
      expect(Buffer.compare(parseSecretsKey(text), bytes)).toBe(0)
    for (const text of [
      'secret',
      '',
      'f'.repeat(63),
      randomBytes(31).toString('base64'),
      randomBytes(33).toString('base64'),
    ])
      expect(() => parseSecretsKey(text)).toThrow(
        /^must be 32 bytes as base64 or as 64 hexadecimal digits; `openssl rand/,
      )
  })

  test('from the configuration decrypts in any process and writes no file', async () => {
    const dir = await temporaryDirectory()
    const key = randomBytes(32)
    const sealed = createVault({ key, dataDir: dir }).seal(VALUE, place)
    expect(createVault({ key, dataDir: dir }).open(sealed, place)).toBe(VALUE)
    expect(createVault({ key: randomBytes(32), dataDir: dir }).open(sealed, place)).toBeNull()
    expect(readdirSync(dir)).toEqual([])
  })

  test('is generated in DATA_DIR on first use, readable by the owner only, and reused', async () => {
    const dir = await temporaryDirectory()
    const first = createVault({ key: undefined, dataDir: dir })
    expect(readdirSync(dir)).toEqual([])
    const sealed = first.seal(VALUE, place)
    expect(readdirSync(dir)).toEqual(['secrets.key'])
    expect(statSync(join(dir, 'secrets.key')).mode & 0o777).toBe(0o600)
    expect(createVault({ key: undefined, dataDir: dir }).open(sealed, place)).toBe(VALUE)
    const key = parseSecretsKey(readFileSync(join(dir, 'secrets.key'), 'utf8').trim())
    expect(createVault({ key, dataDir: dir }).open(sealed, place)).toBe(VALUE)
  })

  test('is not generated for decrypting, and a damaged file is not replaced', async () => {
    const dir = await temporaryDirectory()
    expect(createVault({ key: undefined, dataDir: dir }).open(vault.seal(VALUE, place), place)).toBeNull()
    expect(readdirSync(dir)).toEqual([])
    writeFileSync(join(dir, 'secrets.key'), 'damaged')
    expect(() => createVault({ key: undefined, dataDir: dir }).seal(VALUE, place)).toThrow('secrets.key in DATA_DIR')
    expect(readFileSync(join(dir, 'secrets.key'), 'utf8')).toBe('damaged')
  })

  test('after a change of the key, a secret is an error that names it until it is set again', async () => {
    await put('ROTATED', VALUE)
    const changed = new SecretStore({ sql, clock, vault: createVault({ key: randomBytes(32), dataDir }) })
    expect(await missing(filled('{{secret:ROTATED}}', owner.workspaceId, changed))).toBe(
      'secret ROTATED was sealed with another SECRETS_KEY: PUT /api/v1/secrets/ROTATED again',
    )
    await changed.put({ ...owner } as never, 'ROTATED', { value: VALUE }, undefined)
    expect((await filled('{{secret:ROTATED}}', owner.workspaceId, changed)).headers.authorization).toBe(VALUE)
  })
})

describe('redacting', () => {
  const redact = redactor([VALUE, 'pass word+/=?~', 'abcd'])

  test.each([
    ['verbatim', `x ${VALUE} y`],
    ['in JSON', JSON.stringify({ a: VALUE })],
    ['in a URL', `/?a=${encodeURIComponent(VALUE)}`],
    ['in a URL, in lower case', encodeURIComponent(VALUE).replaceAll(/%../g, (each) => each.toLowerCase())],
    ['in a form', new URLSearchParams({ a: VALUE }).toString()],
    ['in a form, with spaces', new URLSearchParams({ a: 'pass word+/=?~' }).toString()],
    ['in base64', Buffer.from(VALUE).toString('base64')],
    ['in base64 without padding', Buffer.from(VALUE).toString('base64url')],
    ['in base64, short', Buffer.from('abcd').toString('base64')],
    ['in base64, after one byte', Buffer.from(`:${VALUE}`).toString('base64')],
    ['in base64, after two bytes', Buffer.from(`a:${VALUE}`).toString('base64')],
    ['in base64, within other text', Buffer.from(`user:${VALUE}, and more`).toString('base64')],
    ['in base64, as Latin-1', Buffer.from(`Bearer ${VALUE}`, 'latin1').toString('base64')],
  ])('finds a value %s', (_, text) => {
    const redacted = redact(text)
    expect(redacted).toContain('•••')
    for (const part of ['4eC39HqLyjWDarjtT1zdp7dc', 'pass', 'abcd', 'YWJjZA']) expect(redacted).not.toContain(part)
    const bytes = Buffer.from(redacted, 'base64').toString('latin1')
    expect(bytes).not.toContain('HqLyjWDarjt')
  })

  test('leaves other text unchanged', () => {
    expect(redact('nothing of the kind: abc YWJ %20')).toBe('nothing of the kind: abc YWJ %20')
  })
})

test('no response and no log line of these tests contained a value', () => {
  expect(seen.length).toBeGreaterThan(100)
  expect(logged.length).toBeGreaterThan(50)
  for (const value of ['4eC39HqLyjWDarjtT1zdp7dc', 'mine-of-the-owner', 'wonderland', 'another value'])
    for (const text of [...seen, ...logged]) expect(text).not.toContain(value)
})
