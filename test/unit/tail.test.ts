import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { elements, members } from '../../src/base/json-parts.ts'
import { readArgs } from '../../src/cli/tail/args.ts'
import { createFormat } from '../../src/cli/tail/format.ts'
import { parseSince } from '../../src/cli/tail/since.ts'
import type { ActivityItem } from '../../src/feeds/live/messages.ts'
import { seededRandom } from '../support/random.ts'

/** The parts of `bun run tail` that need no service. */

const KEY = { AGENT_RUN_KEY: 'svc_ws_x' }

test('filters take several values; key and URL may come from the environment', () => {
  const args = ['--agent', 'a,b', '--agent=c', '--type', 'tool.*', '--level', 'warn', '--max-per-second', '5', '--json']
  expect(readArgs(args, { ...KEY, AGENT_RUN_URL: 'https://runs.example/ ' })).toEqual({
    url: 'https://runs.example',
    key: 'svc_ws_x',
    filter: { agent_id: ['a', 'b', 'c'], type: ['tool.*'], level: ['warn'] },
    since: { kind: 'now' },
    maxPerSecond: 5,
    json: true,
    noColor: false,
  })
  expect(readArgs(['--key', 'svc_agent_y'], { ...KEY, NO_COLOR: '1' })).toMatchObject({
    url: 'http://127.0.0.1:3000',
    key: 'svc_agent_y',
    filter: {},
    noColor: true,
  })
})

test.each([
  [['--max', '3'], /Did you mean\n {2}--max-per-second/],
  [['now'], /'now'/],
  [['--level', 'warn,'], /--level needs a value\n {2}--level <level>/],
  [['--since', '2 hours'], /--since takes 90s, 10m, 2h, 1d, 0 or a cursor; got "2 hours"/],
  [['--max-per-second', '0'], /a whole number from 1; got "0"/],
  [['--key', 'secret'], /^a key begins with svc_ws_ or svc_agent_; this one does not$/],
])('rejects the command line %j and says what to do', (args, message) => {
  expect(() => readArgs(args, KEY)).toThrow(
    expect.objectContaining({ exitCode: 2, message: expect.stringMatching(message) }),
  )
})

test('--since takes a duration, zero or a cursor', () => {
  expect(parseSince('90s')).toEqual({ kind: 'ago', seconds: 90 })
  expect(parseSince('1d')).toEqual({ kind: 'ago', seconds: 86_400 })
  expect(parseSince('0')).toEqual({ kind: 'cursor', cursor: '0' })
  expect(parseSince('827836f89723.12')).toEqual({ kind: 'cursor', cursor: '827836f89723.12' })
  for (const text of ['', '-5m', '99999999999d']) expect(parseSince(text)).toBe(null)
})

test('splits JSON into the exact texts of its parts', () => {
  const { seed } = seededRandom('json-parts')
  const value = fc.oneof(
    fc.jsonValue({ noUnicodeString: false }).map((each) => JSON.stringify(each, null, 1)),
    fc.constantFrom('12345678901234567890', '1.0', '-0', '"\\\\"', '"a\\"],}"', '[ ]', '{ }'),
  )
  const space = fc.constantFrom('', ' ', '\n\t')
  fc.assert(
    fc.property(fc.array(value), space, (texts, gap) => {
      expect(elements(`[${gap}${texts.join(`${gap},${gap}`)}${gap}]`)).toEqual(texts)
      const named = texts.map((text, n) => [`"${n}:,`, text] as [string, string])
      const object = named.map(([name, text]) => `${JSON.stringify(name)}${gap}:${gap}${text}`).join(`,${gap}`)
      expect(members(`{${gap}${object}${gap}}`)).toEqual(named)
    }),
    { seed },
  )
})

const BASE = {
  cursor: 'e.1',
  agent_id: '0198f2aa-0000-7000-8000-0000000000aa',
  run_id: '0198f2aa-0000-7000-8000-0000000000bb',
  received_at: new Date().toISOString(),
}

function event(type: string, level: string, payload: string) {
  const activity: ActivityItem = { ...BASE, kind: 'event', event: { type, level, payload: undefined } }
  const json = JSON.stringify(activity).replace(/}}$/, `,"payload":${payload}}}`)
  return { activity, json }
}

function lines(options: Partial<Parameters<typeof createFormat>[0]>, received: ReturnType<typeof event>[]) {
  const format = createFormat({
    color: false,
    width: () => Number.POSITIVE_INFINITY,
    agentName: () => undefined,
    ...options,
  })
  return received.map((each) => format(each).replace(/^\d\d:\d\d:\d\d\.\d{3} /, ''))
}

test('lines are aligned in columns and describe each kind of activity', () => {
  const task = { name: 'look up', status: 'failed', error_message: 'no such parcel' }
  const run = { status: 'timed_out', duration_ms: 3_210, error_message: 'silent', tags: ['a', 'b'] }
  const names = new Map([[BASE.agent_id, '支援']])
  expect(
    lines({ agentName: (id) => names.get(id) }, [
      event(
        'tool.call',
        'warn',
        '{"n":12345678901234567890,"s":"two words","w":"one","message":"found\\nit","gen_ai.x":{"a": 1}}',
      ),
      event('x', 'debug', '{}'),
      { activity: { ...BASE, kind: 'task', task }, json: '{}' },
      { activity: { ...BASE, agent_id: BASE.run_id, kind: 'run', run }, json: '{}' },
    ]),
  ).toEqual([
    'WARN  支援 …000000bb tool.call found it n=12345678901234567890 s="two words" w=one x={"a": 1}',
    'DEBUG 支援 …000000bb x',
    '      支援 …000000bb task failed look up  no such parcel',
    '      …000000bb …000000bb run timed out 3.21 s  silent  #a #b',
  ])
})

test("lines end at the terminal's width, whatever the width of their characters", () => {
  for (const payload of [`{"message":"${'日本'.repeat(200)}"}`, `{"message":"${'word '.repeat(100)}"}`]) {
    for (const color of [false, true]) {
      const format = createFormat({ color, width: () => 80, agentName: () => undefined })
      const line = Bun.stripANSI(format(event('step', 'error', payload)))
      expect(line).toEndWith('…')
      expect(Bun.stringWidth(line)).toBeOneOf([79, 80])
    }
  }
})

test('untrusted text can neither control the terminal, nor change its direction, nor start a new line', () => {
  const nasty = '\\u001b]0;title\\u0007\\u009b31m\\u202etxt\\u061c\\r\\nERROR'
  const [line] = lines({ agentName: () => 'a\x1b[2Jb\nc' }, [event('\x1b[31m', 'info', `{"message":"${nasty}"}`)])
  expect(line).toBe(
    'INFO  a\\u001b[2Jb c …000000bb \\u001b[31m \\u001b]0;title\\u0007\\u009b31m\\u202etxt\\u061c ERROR',
  )
  const [raw] = lines({}, [event('x', 'info', '{"a":"\x9b31m b","\x7f":1}')])
  expect(raw).toBe('INFO  …000000aa …000000bb x a="\\u009b31m b" \\u007f=1')
})

test('colours levels and statuses when the terminal has colour, and separates days', () => {
  const format = createFormat({ color: true, width: () => 200, agentName: () => undefined })
  expect(format(event('x', 'error', '{}'))).toContain('\x1b[1;31mERROR\x1b[0m')
  expect(format(event('x', 'warn', '{}'))).toContain('\x1b[33mWARN \x1b[0m')
  const old = event('x', 'info', '{}')
  const earlier = { ...old, activity: { ...old.activity, received_at: '2020-02-01T12:00:00.000Z' } }
  const shown = [earlier, earlier, old].map((each) => Bun.stripANSI(format(each)).split('\n'))
  expect(shown.map((each) => each.length)).toEqual([2, 1, 2])
  expect(shown[0]?.[0]).toBe('── Sat Feb 01 2020 ──')
})
