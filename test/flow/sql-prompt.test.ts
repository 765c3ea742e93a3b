import { beforeAll, describe, expect, test } from 'bun:test'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { bytes } from '../../src/base/format.ts'
import { remoteClickHouse } from '../../src/stores/clickhouse/backend.ts'
import { type ColumnarClient, createColumnarClient } from '../../src/stores/clickhouse/client.ts'
import { mintToken } from '../../src/tenants/keys/token.ts'
import { newAgent } from '../support/api.ts'
import { runningStatements } from '../support/columnar.ts'
import { eventually } from '../support/eventually.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { temporaryDirectory } from '../support/teardown.ts'
import { openPrompt, runSql, runSqlIntoHead } from './sql-process.ts'

/** `bun run sql` as a process, against the real service; a scripted server plays faults. */

let service: TestService
/** The position after which all events below are readable. */
let lastSeq: number
let engine: ColumnarClient

beforeAll(async () => {
  service = await startTestService()
  engine = createColumnarClient(remoteClickHouse(service.clickhouseUrl))
  const { api } = service
  const { agentId, agentKey } = await newAgent(api, { name: 'support' })
  const { data } = await api('POST', '/api/ingest/v1/run/start', { agent_id: agentId }, { key: agentKey })
  const events = [
    { type: 'llm.call', payload: { tokens: 12, text: 'two\nlines' } },
    { type: 'tool.call', level: 'warn', payload: { tokens: 7, text: '\u001b[31mred\u0007' } },
  ]
  const body = { run_id: data.run_id, events }
  const answer = await api('POST', '/api/ingest/v1/events', body, { key: agentKey })
  lastSeq = answer.data.last_seq
})

const FOOTER = /^\d+ rows?, [\d.]+ m?s, \d+ B, complete through [\w.]+\n$/
/** Keeps the engine busy up to the time limit. */
const ENDLESS = 'SELECT count() FROM numbers(100000000007) WHERE sipHash64(number) = 1'

describe('a single query', () => {
  test('prints a table to standard output, and the footer to standard error', async () => {
    const query = `SELECT type, level, payload.tokens AS tokens, NULL AS nothing FROM events ORDER BY seq`
    const { code, stdout, stderr } = await runSql(service, [query, '--wait-for', String(lastSeq)])
    expect(stderr).toMatch(FOOTER)
    expect([code, stdout]).toEqual([
      0,
      `
type       level  tokens  nothing
---------  -----  ------  -------
llm.call   info   12      NULL
tool.call  warn   7       NULL
`.slice(1),
    ])
  })

  test('untrusted text cannot send terminal control sequences', async () => {
    const query = 'SELECT payload.text::String AS text, 5 AS n FROM events ORDER BY seq'
    const table = await runSql(service, [query])
    expect(table.stdout).toBe(
      'text                 n\n-------------------  -\ntwo lines            5\n\\u001b[31mred\\u0007  5\n',
    )
    const { stdout } = await runSql(service, [query, '--format', 'vertical'])
    expect(stdout).toBe(
      '-- row 1 --\ntext  two\n      lines\nn     5\n-- row 2 --\ntext  \\u001b[31mred\\u0007\nn     5\n',
    )
  })

  test('json is the exact response', async () => {
    const query = 'SELECT 18446744073709551615 AS big, [1, 2] AS list, {text:String} AS text'
    const { stdout, stderr } = await runSql(service, [query, '--format', 'json', '--param', 'text=a=b'])
    expect(stdout).toContain('"big": 18446744073709551615')
    const answer = JSON.parse(stdout)
    expect(answer).toMatchObject({ rows: [{ list: [1, 2], text: 'a=b' }], row_count: 1, truncated: false })
    expect(answer.complete_through).toMatch(/\.\d+$/)
    expect(stderr).toBe('')
  })

  test('csv and ndjson stream to standard output, with more rows than a table may have', async () => {
    const query = 'SELECT type, payload.tokens AS tokens, NULL AS nothing FROM events ORDER BY seq'
    const csv = await runSql(service, [query, '--format', 'csv', '--wait-for', String(lastSeq)])
    expect([csv.code, csv.stdout]).toEqual([0, '"type","tokens","nothing"\n"llm.call",12,\n"tool.call",7,\n'])
    const long = await runSql(service, ['SELECT number FROM numbers(25000)', '--format', 'ndjson'])
    expect(long.stdout.trimEnd().split('\n')).toHaveLength(25_000)
    expect(long.stdout).toEndWith('{"number":24999}\n')
  })

  test.each([
    ['parquet', 'Parquet'],
    ['arrow', 'ArrowStream'],
  ])('writes %s to a file that ClickHouse can read', async (format, name) => {
    const path = join(await temporaryDirectory(), `answer.${format}`)
    const query = 'SELECT type, payload.tokens::Int64 AS tokens FROM events WHERE level = {level:String}'
    const asked = [query, '--param', 'level=warn', '--format', format, '--output', path, '--wait-for', String(lastSeq)]
    const { code, stdout, stderr } = await runSql(service, asked)
    expect([code, stdout]).toEqual([0, ''])
    expect(stderr).toBe(`wrote ${bytes((await stat(path)).size)} to ${path}\n`)
    const rows = await engine.query(`SELECT * FROM file({path:String}, '${name}')`, { params: { path } })
    expect(rows).toEqual([{ type: 'tool.call', tokens: 7 }])
  })

  test.each([
    ['csv', 20_000],
    ['table', 3],
    ['ndjson', 0],
  ])('reports on standard error what was written to a file of %s with %i rows', async (format, rows) => {
    const path = join(await temporaryDirectory(), 'answer')
    const query = `SELECT number, 'two\nlines, "quoted"' AS text FROM numbers(${rows})`
    const { code, stdout, stderr } = await runSql(service, [query, '--format', format, '--output', path])
    expect([code, stdout]).toEqual([0, ''])
    expect(stderr.split('\n').at(-2)).toBe(`wrote ${bytes((await stat(path)).size)} to ${path}`)
  })

  test('runs statements from an argument, a pipe or a file in order', async () => {
    const text = "SELECT ';' AS a; -- that was one;\nSELECT 2 AS b;\n\n"
    const shown = 'a\n-\n;\n\nb\n-\n2\n'
    const file = join(await temporaryDirectory(), 'queries.sql')
    await writeFile(file, text)
    expect((await runSql(service, [text])).stdout).toBe(shown)
    expect((await runSql(service, [], text)).stdout).toBe(shown)
    expect((await runSql(service, ['-f', file])).stdout).toBe(shown)
    const none = await runSql(service, [], ' -- nothing\n')
    expect([none.code, none.stderr]).toEqual([2, 'no query: pass one in quotes, with --file or through a pipe\n'])
  })

  test('marks the place of an SQL error, and exits with 1', async () => {
    const { code, stdout, stderr } = await runSql(service, ["SELECT 'ä',\n  count()\nFORM events;\nSELECT 1"])
    expect([code, stdout]).toEqual([1, ''])
    const [message, line, mark] = stderr.split('\n')
    expect(message).toMatch(/^Syntax error: failed at position \d+ /)
    expect([line, mark]).toEqual(['  FORM events', '       ^'])
  })

  test('warns about a truncated result', async () => {
    const { code, stderr } = await runSql(service, ['SELECT number FROM numbers(10001)', '--format', 'json'])
    expect([code, stderr]).toEqual([0, 'TRUNCATED to 10,000 rows. Aggregate, or filter more.\n'])
  })

  test('ends quietly when its reader exits', async () => {
    const { stdout, stderr } = await runSqlIntoHead(service, 2, ["SELECT repeat('x', 2000) AS x FROM numbers(5000)"])
    expect(stdout.split('\n').map((line) => line.length)).toEqual([1, 2000, 0])
    expect(stderr).toEndWith('exit code 0\n')
  })

  test.each([
    ['--formt', 'csv', /^unknown option --formt\. Did you mean\n {2}--format </],
    ['--format', 'xml', '--format must be one of table, vertical, json, ndjson, csv, parquet, arrow; got "xml"\n'],
    ['--key', 'svc_agent_x', 'this is an agent key; SQL needs a workspace key (svc_ws_…)\n'],
    ['--file', 'no-such-file.sql', /^cannot read no-such-file\.sql: /],
  ])('rejects %s %s with exit code 2', async (option, value, message) => {
    const { code, stderr } = await runSql(service, [option, value])
    expect([code, stderr]).toEqual([2, typeof message === 'string' ? message : expect.stringMatching(message)])
  })

  test('reports an unknown key, and a service that is not running', async () => {
    const workspaceKey = mintToken('workspace').text
    const unknown = await runSql({ ...service, workspaceKey }, ['SELECT 1'])
    expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringMatching(/^the service at \S+ rejected the key: /)])
    const absent = await runSql({ ...service, url: 'http://127.0.0.1:1' }, ['SELECT 1'])
    expect([absent.code, absent.stderr]).toEqual([
      1,
      'no service responds at http://127.0.0.1:1 (ECONNREFUSED).\n' +
        'Start one with "npx --yes bun run start", or set --url or AGENT_RUN_URL.\n',
    ])
  })
})

describe('responses of a service', () => {
  /** A service that answers each query with `respond()`, and the queries it got. */
  function scripted(respond: (request: Request) => Response) {
    const queries: Record<string, unknown>[] = []
    const server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      routes: {
        '/api/v1/query': async (request) => {
          queries.push((await request.json()) as Record<string, unknown>)
          return respond(request)
        },
      },
      fetch: () => Response.json({ data: null, error: { code: 'NOT_FOUND', message: 'no route' } }, { status: 404 }),
    })
    server.unref()
    return { url: server.url.href, workspaceKey: 'svc_ws_scripted', queries }
  }
  const failing = (status: number, code: string, headers: Record<string, string>) =>
    scripted(() => Response.json({ data: null, error: { code, message: 'not now' } }, { status, headers }))

  test("writes the service's formats byte for byte", async () => {
    const bytes = Uint8Array.from({ length: 300_000 }, (_, i) => (i * 31) % 256)
    const asked = scripted(() => new Response(bytes))
    const piped = await runSql(asked, ['SELECT 1', '--format', 'arrow', '--param', 'a=1', '--wait-for', 'e.7'])
    expect(Buffer.compare(piped.bytes, bytes)).toBe(0)
    const output = join(await temporaryDirectory(), 'answer.parquet')
    const filed = await runSql(asked, ['SELECT 1', '--format', 'parquet', '--output', output])
    expect([filed.code, filed.stdout, filed.stderr]).toEqual([0, '', `wrote 300 kB to ${output}\n`])
    expect(Buffer.compare(await readFile(output), bytes)).toBe(0)
    expect(asked.queries).toEqual([
      { query: 'SELECT 1', params: { a: '1' }, format: 'arrow', wait_for: 'e.7' },
      { query: 'SELECT 1', params: {}, format: 'parquet' },
    ])
  })

  test('a failed query leaves the existing output file unchanged', async () => {
    const output = join(await temporaryDirectory(), 'answer.csv')
    await writeFile(output, 'earlier')
    const { code } = await runSql(service, ['SELECT nonsense', '--format', 'csv', '--output', output])
    expect([code, await readFile(output, 'utf8')]).toEqual([1, 'earlier'])
  })

  test('reports a response that is cut off', async () => {
    const listener = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: { data: (socket) => void socket.end('HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n1\n') },
    })
    listener.unref()
    const asked = { ...service, url: `http://127.0.0.1:${listener.port}` }
    const { code, stderr } = await runSql(asked, ['SELECT 1', '--format', 'csv'])
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^the connection was lost during the response: /)])
  })

  test.each([
    [429, 'RATE_LIMITED', { 'retry-after': '7' }, 'not now (RATE_LIMITED)\nTry again in 7 s.\n'],
    [503, 'UNAVAILABLE', { 'retry-after': '1' }, 'not now (UNAVAILABLE)\nTry again in 1 s.\n'],
    [403, 'FORBIDDEN', {}, 'not now (FORBIDDEN)\n'],
  ])('reports %d, and when to retry', async (status, error, headers, message) => {
    const { code, stderr } = await runSql(failing(status, error, headers), ['SELECT 1'])
    expect([code, stderr]).toEqual([1, message])
  })

  test("reports that the address is not the service's", async () => {
    const other = scripted(() => new Response('<p>', { status: 502 }))
    const { code, stderr } = await runSql(other, ['SELECT 1'])
    expect([code, stderr]).toEqual([
      1,
      `${other.url.replace(/\/$/, '')} responded with status 502: is it the URL of the service?\n`,
    ])
  })
})

describe('the prompt', () => {
  test('runs statements of several lines, goes on after an error, and ends with Ctrl-D', async () => {
    const terminal = openPrompt(service, { args: ['--wait-for', String(lastSeq)] })
    await terminal.next(/sql> $/)
    terminal.type("SELECT type, ';' AS sign -- not yet;\r")
    await terminal.next(/ \.\.\. $/)
    terminal.type('FROM events\rORDER BY seq;\r')
    expect(await terminal.next(/complete through [\w.]+\nsql> $/)).toContain(
      `
┌───────────┬──────┐
│ type      │ sign │
├───────────┼──────┤
│ llm.call  │ ;    │
│ tool.call │ ;    │
└───────────┴──────┘
2 rows, `,
    )
    terminal.type("SELEC 1; SELECT 'next', 'statement';\r")
    expect(await terminal.next(/│ next {3}│ statement {3}│[\s\S]*sql> $/)).toMatch(/\n {2}SELEC 1\n {2}\^/)
    terminal.type('\x04')
    expect(await terminal.exited).toBe(0)
  })

  test.each(['\\q', 'exit', 'QUIT;'])('%s ends it, with the format of the command line', async (word) => {
    const terminal = openPrompt(service, { args: ['--format', 'vertical'] })
    await terminal.next(/sql> $/)
    terminal.type('SELECT 1 AS a, NULL AS b;\r')
    await terminal.next(/── row 1 ──\na {2}1\nb {2}NULL\n1 row, .*\nsql> $/)
    terminal.type(`${word}\r`)
    expect(await terminal.exited).toBe(0)
  })

  test('SIGTERM ends it, also while a query runs', async () => {
    const terminal = openPrompt(service)
    await terminal.next(/sql> $/)
    terminal.type(`${ENDLESS};\r`)
    await eventually(async () => (await running()) === 1)
    terminal.signal('SIGTERM')
    expect(await terminal.exited).toBe(0)
    await eventually(async () => (await running()) === 0)
  })

  test('Ctrl-C cancels the running query, in the service too, and the statements behind it', async () => {
    const terminal = openPrompt(service)
    await terminal.next(/sql> $/)
    // More than may run at once: earlier ones must have ended in the service.
    for (let i = 0; i < 4; i++) {
      terminal.type(`${ENDLESS}; SELECT 'behind';\r`)
      await eventually(async () => (await running()) === 1)
      terminal.type('\x03')
      expect(await terminal.next(/cancelled\n[\s\S]*sql> $/)).not.toContain('│')
      await eventually(async () => (await running()) === 0)
    }
    terminal.type('SELECT 1 +\r')
    await terminal.next(/ \.\.\. $/)
    terminal.type('2\x03')
    await terminal.next(/\^C\n[\s\S]*sql> $/)
    terminal.type("SELECT 'on' AS it, 'goes';\r")
    await terminal.next(/│ on │ goes {3}│/)
    terminal.type('\x04')
    expect(await terminal.exited).toBe(0)
  })

  test('results fit the terminal, in the characters and colours it supports', async () => {
    const query = "SELECT 7 AS n, NULL AS none, repeat('界', 100) AS wide"
    const box = openPrompt(service, { columns: 40, args: [query] })
    expect(await box.exited).toBe(0)
    expect(box.shown()).toContain('│ 7 │ NULL │ 界界界界界界界界界界界界… │\n')
    expect(box.raw()).toContain('\x1b[2mNULL\x1b[0m')
    const plain = openPrompt(service, { columns: 40, args: [query], env: { LANG: 'C', NO_COLOR: '1' } })
    expect(await plain.exited).toBe(0)
    expect(plain.raw()).toContain('| 7 | NULL | 界界界界界界界界界界界... |\r\n')
    expect(plain.raw()).not.toContain('\x1b')
    const narrow = openPrompt(service, { columns: 20, args: [`${query}, repeat('a', 50) AS long`] })
    expect(await narrow.exited).toBe(0)
    expect(narrow.shown()).toContain('too many')
    expect(narrow.shown()).toContain('n     7\n')
    const binary = openPrompt(service, { args: [query, '--format', 'arrow'] })
    expect(await binary.exited).toBe(2)
    expect(binary.shown()).toBe('arrow is a binary format: use --output <path>\n')
  })

  /** The number of endless queries in the engine. */
  async function running(): Promise<number> {
    return runningStatements(engine, '%numbers(100000000007)%')
  }
})
