import { describe, expect, test } from 'bun:test'
import { ApiError } from '../../src/base/errors.ts'
import { type FilterInput, parseFilter, type Scope } from '../../src/feeds/live/filter.ts'

const ALL: Scope = { agentId: null, runId: null }
const [A, B, RUN] = [
  'aaaaaaaa-0000-7000-8000-000000000001',
  'bbbbbbbb-0000-7000-8000-000000000002',
  'cccccccc-0000-7000-8000-000000000003',
]

function parsed(input: FilterInput, scope = ALL) {
  return parseFilter(input, 'filter', scope)
}

function refusal(input: FilterInput, scope = ALL): string {
  try {
    parsed(input, scope)
  } catch (error) {
    if (error instanceof ApiError) return `${error.code} ${error.message}`
    throw error
  }
  return 'none'
}

describe('rejects a mistake and names its place', () => {
  const long = 'x'.repeat(10_001)
  const many = Array.from({ length: 101 }, (_, i) => `type ${i}`)
  const cases: [name: string, input: FilterInput, message: string | RegExp][] = [
    [
      'an unknown field',
      { typ: 'a' },
      /^filter\.typ: unknown field; expected one of agent_id, run_id, task_id, session_id, external_user_id, kind, type/,
    ],
    ['a property that every object inherits', { toString: 'a' }, /^filter\.toString: unknown field/],
    ['an empty list', { agent_id: [] }, /^filter\.agent_id: expected at least one value; omit the field/],
    ['too many values', { type: many }, 'filter.type: expected at most 100 values'],
    ['a number', { level: 3 }, 'filter.level: expected text'],
    ['an object in a list', { tag: ['a', {}] }, 'filter.tag[1]: expected text'],
    ['null in a list', { tag: [null] }, 'filter.tag[0]: expected text'],
    ['an agent that is not a uuid', { agent_id: 'me' }, 'filter.agent_id: expected a uuid'],
    ['a run that is not a uuid, in a list', { run_id: [RUN, `${RUN}0`] }, 'filter.run_id[1]: expected a uuid'],
    [
      'an unknown kind',
      { kind: ['run', 'runs'] },
      'filter.kind[1]: expected one of event, task, run, score; got "runs"',
    ],
    ['an unknown level', { level: 'warning' }, 'filter.level: expected one of debug, info, warn, error; got "warning"'],
    ['an unknown status', { status: 'done' }, /^filter\.status: expected one of pending, running, .*; got "done"$/],
    ['an unknown status among others', { status: 'failed,done' }, /^filter\.status\[1\]: expected one of pending/],
    ['an empty type', { type: '' }, 'filter.type: expected 1 to 10000 characters'],
    ['a type that is too long', { type: [long] }, 'filter.type[0]: expected 1 to 10000 characters'],
    ['a star in the middle', { type: 'a*b' }, 'filter.type: a * is allowed only at the end'],
    ['two stars', { type: '**' }, 'filter.type: a * is allowed only at the end'],
    ['an empty tag', { tag: '' }, 'filter.tag: expected 1 to 2000 characters'],
    ['an empty user', { external_user_id: '' }, 'filter.external_user_id: expected 1 to 255 characters'],
    ['a session that is too long', { session_id: long }, 'filter.session_id: expected 1 to 255 characters'],
    ['a tag that is too long', { tag: long.slice(0, 2_001) }, 'filter.tag: expected 1 to 2000 characters'],
    [
      'a kind without the field',
      { kind: 'task', level: 'warn' },
      /^filter: nothing can match: .* satisfies kind and level together/,
    ],
    [
      'fields of different kinds',
      { type: 'a', tag: 'b' },
      /^filter: nothing can match: .* satisfies type and tag together$/,
    ],
  ]
  for (const [name, input, message] of cases)
    test(name, () => {
      const refused = refusal(input)
      expect(refused).toStartWith('VALIDATION_ERROR ')
      expect(refused.slice('VALIDATION_ERROR '.length)).toMatch(message)
    })

  test('truncates a long value in the message', () => {
    expect(refusal({ level: long }).length).toBeLessThan(300)
  })
})

test('an empty filter matches everything, and so does a null field', () => {
  const { key, kinds, ...rest } = parsed({})
  expect([...kinds]).toEqual(['event', 'task', 'run', 'score'])
  expect(Object.values(rest)).toEqual(new Array(9).fill(undefined))
  expect(parsed({ agent_id: null, level: undefined, tag: null }).key).toBe(key)
})

describe('equivalent filters have the same key', () => {
  const same: [FilterInput, FilterInput][] = [
    [{ type: 'a' }, { type: ['a'] }],
    [{ type: ['a', 'b', 'a'] }, { type: ['b', 'a'] }],
    [
      { agent_id: A, run_id: RUN },
      { run_id: [RUN], agent_id: [A.toUpperCase()] },
    ],
    [{ level: ['error', 'warn'] }, { level: 'warn' }],
    [{ level: 'warn' }, { level: 'warn', kind: 'event' }],
    [{ kind: ['run', 'score', 'event', 'task'] }, {}],
    [{ status: 'running' }, { status: 'running', kind: ['task', 'run'] }],
    [{ status: 'running,failed' }, { status: ['failed', 'running'] }],
    [{ tag: ['x', 'y'] }, { kind: 'run', tag: ['y', 'x'] }],
  ]
  test.each(same)('%j and %j', (one, other) => {
    expect(parsed(one).key).toBe(parsed(other).key)
  })

  const different: FilterInput[] = [
    {},
    { agent_id: A },
    { agent_id: B },
    { agent_id: [A, B] },
    { run_id: A },
    { kind: 'event' },
    { kind: ['event', 'run'] },
    { type: 'a' },
    { type: 'a*' },
    { type: ['a', 'b'] },
    { type: 'a,b' },
    { level: 'debug' },
    { level: 'info' },
    { status: 'running' },
    { status: 'running', kind: 'run' },
    { session_id: 'a' },
    { external_user_id: 'a' },
    { tag: 'a' },
    { tag: ['a', 'b'] },
    { tag: '["a","b"]' },
  ]
  test('different filters have different keys', () => {
    expect(new Set(different.map((input) => parsed(input).key)).size).toBe(different.length)
  })
})

test('a condition on a field excludes the kinds without that field', () => {
  const kinds = (input: FilterInput) => [...parsed(input).kinds].sort()
  expect(kinds({ type: 'a' })).toEqual(['event'])
  expect(kinds({ level: 'debug' })).toEqual(['event'])
  expect(kinds({ status: 'running' })).toEqual(['run', 'task'])
  expect(kinds({ status: 'running', kind: ['run', 'event'] })).toEqual(['run'])
  expect(kinds({ tag: 'a' })).toEqual(['run'])
  expect(kinds({ tag: 'a', status: 'completed' })).toEqual(['run'])
  expect(kinds({ agent_id: A, run_id: RUN, session_id: 'a', external_user_id: 'b' })).toEqual([
    'event',
    'run',
    'score',
    'task',
  ])
})

test('level is a minimum, and the lowest of several; ids are case-insensitive', () => {
  expect(parsed({ level: 'debug' }).level).toBe(1)
  expect(parsed({ level: ['error', 'warn'] }).level).toBe(3)
  expect(parsed({ agent_id: A.toUpperCase() }).agentIds).toEqual(new Set([A]))
})

test('the scope of the caller limits every filter', () => {
  const agent: Scope = { agentId: A, runId: null }
  const run: Scope = { agentId: A, runId: RUN }
  expect(parsed({}, agent).agentIds).toEqual(new Set([A]))
  expect(parsed({ agent_id: A.toUpperCase() }, agent).agentIds).toEqual(new Set([A]))
  expect(parsed({ run_id: [B] }, agent)).toMatchObject({ agentIds: new Set([A]), runIds: new Set([B]) })
  expect(parsed({ level: 'warn' }, run)).toMatchObject({ agentIds: new Set([A]), runIds: new Set([RUN]), level: 3 })
  expect(refusal({ agent_id: B }, agent)).toStartWith('FORBIDDEN this key or token gives access to one agent only')
  expect(refusal({ agent_id: [A, B] }, agent)).toStartWith('FORBIDDEN')
  expect(refusal({ run_id: [RUN, B] }, run)).toStartWith('FORBIDDEN this key or token gives access to one run only')
  // The scope is part of the filter's meaning.
  expect(parsed({}, agent).key).toBe(parsed({ agent_id: A }).key)
  expect(parsed({}, agent).key).not.toBe(parsed({}).key)
})
