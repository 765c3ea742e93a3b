import { gzipSync } from 'node:zlib'
import { hardObjects, type LoopCase, listOf, MIB, membersOf, sending } from './loop-case.ts'

const BODY_BYTES = 10 * MIB
const FRAME_BYTES = 1_000
const ROOM = BODY_BYTES - FRAME_BYTES
/** The service's limit of values in a body. */
const VALUES = 49_000

const HEADERS = { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-11-25' }
const META =
  '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'

/** The MCP server (docs/mcp.md), as clients of both eras call it. */
export const MCP_CASES: readonly LoopCase[] = [
  // The first call loads the package.
  of('the first call', () => message('tools/list', '{}'), 200),
  ...Object.entries(hardObjects(ROOM)).flatMap(([name, hard]) => [
    of(`a body, ${name}`, () => hard),
    of(`params, ${name}`, () => message('tools/list', hard)),
    of(`arguments, ${name}`, () => call('query', hard)),
    of(`edited_input, ${name}`, () =>
      call('decide', `{"approval_id":"${crypto.randomUUID()}","approve":true,"edited_input":${hard}}`),
    ),
  ]),
  ...['0', '""', '[]', '{}'].map((value) =>
    of(`as many members of arguments as are read, ${value}`, () => call('query', `{${some(value)}}`)),
  ),
  of('300,000 members of params', () => message('tools/call', `{"name":"query",${many(300_000)}}`)),
  of('300,000 members of params of an unknown method', () => message('none', `{${many(300_000)}}`)),
  modern('300,000 members of params, the current revision', () => `{${META},${many(300_000)}}`),
  of('a member of arguments of 10 MB', () => call('query', `{"sql":"${'a'.repeat(ROOM)}"}`)),
  of('a member of arguments of 10 MB of escapes', () => call('query', `{"sql":"${'\\n'.repeat(ROOM / 2 - 10)}"}`)),
  of('an unknown member of arguments of 10 MB', () =>
    call('query', `{"sql":"select 1","more":"${'é'.repeat(ROOM / 2)}"}`),
  ),
  of('a member of an unknown tool of 10 MB', () => call('none', `{"a":"${'a'.repeat(ROOM)}"}`)),
  modern('as many members of _meta as are read', () => `{${META.slice(0, -1)},${some('0')}}}`),
  modern('capabilities', () => `{${META.replace('{}', `{${some('{}')}}`)}}`),
  of('a long query', () => call('query', JSON.stringify({ sql: '('.repeat(ROOM) }))),
  of('a long id', () => `{"jsonrpc":"2.0","id":"${'\\u00e9'.repeat(ROOM / 6)}","method":"tools/list"}`),
  of('a long name of a tool', () => message('tools/call', `{"name":"${'é'.repeat(ROOM / 2)}","arguments":{}}`)),
  of('a long method', () => `{"jsonrpc":"2.0","id":1,"method":"${'a'.repeat(ROOM)}"}`),
  of('a long address', () => message('resources/read', `{"uri":"run://${'a'.repeat(ROOM)}"}`)),
  of('a long batch', () => `[${listOf('{"jsonrpc":"2.0","method":"ping"}', ROOM)}]`),
  of('a batch of large messages', () => {
    const one = (id: number) =>
      `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"query","arguments":{"sql":"${'\\u0041'.repeat(ROOM / 140)}"}}}`
    return `[${Array.from({ length: 20 }, (_, id) => one(id)).join(',')}]`
  }),
  of('members of a prompt', () => message('prompts/get', `{"name":"slowest-tools","arguments":{${some('""')}}}`)),
  of('an answer of 64 KiB of long numbers', () =>
    call('query', JSON.stringify({ sql: 'SELECT range(1234567890123456, 1234567890126000) AS a' })),
  ),
  of('a large answer that is cut', () =>
    call('query', JSON.stringify({ sql: "SELECT repeat('\u00e9\\n', 50000) AS s FROM numbers(200)" })),
  ),
  {
    name: 'a compressed body',
    status: 'any',
    request: () => ({
      method: 'POST',
      path: '/mcp',
      headers: { ...HEADERS, 'content-type': 'application/json', 'content-encoding': 'gzip' },
      body: new Uint8Array(gzipSync(' '.repeat(BODY_BYTES))),
    }),
  },
]

function of(name: string, body: () => string, status: LoopCase['status'] = 'any'): LoopCase {
  return { name, status, request: () => sending('POST', '/mcp', body(), HEADERS) }
}

/** A request of revision 2026-07-28. */
function modern(name: string, params: () => string): LoopCase {
  const headers = { ...HEADERS, 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list' }
  return { name, status: 'any', request: () => sending('POST', '/mcp', message('tools/list', params()), headers) }
}

function message(method: string, params: string): string {
  return `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`
}

function call(tool: string, input: string): string {
  return message('tools/call', `{"name":"${tool}","arguments":${input}}`)
}

/** Members, more than the service's limit of values. */
function many(count: number): string {
  return Array.from({ length: count }, (_, n) => `"m${n}":0`).join()
}

/** Members, fewer than the service's limit of values. */
function some(value: string): string {
  return membersOf(ROOM, value).split(',').slice(0, VALUES).join(',')
}
