import { describe, expect, test } from 'bun:test'
import {
  jsonOf,
  newDraft,
  type ToolDraft,
  textOf,
  toolsOf,
  withJson,
  withMember,
} from '../../src/dashboard/page/agents/tool-draft.ts'
import { ApiFailure } from '../../src/dashboard/page/data/api.ts'
import { problemAt, problemBeside } from '../../src/dashboard/page/data/problems.ts'
import { diffLines, withoutSame } from '../../src/dashboard/page/parts/diff.tsx'

/** The parts of the dashboard's agents that need no browser. */

const tool = (members: object = {}): ToolDraft => {
  const draft = newDraft('http')
  return { ...draft, tool: { ...draft.tool, name: 'pay', ...members } }
}

describe('tools as they are edited', () => {
  test('become JSON and back without a loss, digits included', () => {
    const text =
      '[{"type":"http","name":"a","parameters":{"maximum":9223372036854775807,"multipleOf":1.0},"x":[1],"constructor":2}]'
    const tools = toolsOf(text)
    expect(tools).toHaveLength(1)
    expect(textOf(tools).replaceAll(/\s/g, '')).toBe(text)
    expect(toolsOf('')).toEqual([])
    expect([textOf([]), textOf(' ')]).toEqual(['[]', '[]'])
  })

  test('are no form if they are not an array of tools of known types', () => {
    for (const text of ['{', '{}', '[1]', '[{}]', '[{"type": "toString"}]', '[{"type": "http"}, null]'])
      expect(toolsOf(text)).toBe(text)
  })

  test('a member that is not JSON yet makes the whole no JSON, and stays as it was typed', () => {
    const broken = withJson(tool(), 'headers', '{"a": ')
    expect(jsonOf(broken, 'headers')).toBe('{"a": ')
    expect(() => JSON.parse(textOf([tool(), broken]))).toThrow()
    const whole = withJson(broken, 'headers', '{"a":   "b"}')
    expect(jsonOf(whole, 'headers')).toBe('{"a":   "b"}')
    expect(JSON.parse(textOf([whole]))[0].headers).toEqual({ a: 'b' })
    expect(JSON.parse(textOf([withJson(whole, 'headers', ' ')]))[0]).not.toHaveProperty('headers')
  })

  test('a changed member stays in its place, and undefined removes it', () => {
    expect(Object.keys(withMember(tool(), 'name', 'other').tool)).toEqual(Object.keys(tool().tool))
    expect(withMember(tool({ allowed_tools: ['a'] }), 'allowed_tools', undefined).tool).toEqual(tool().tool)
  })
})

describe('refusals', () => {
  test('belong to the field that they name', () => {
    const problems = [
      { param: 'tools[1].url', message: 'expected a URL' },
      { param: 'tools[0].parameters.properties.n.type', message: 'expected one' },
      { param: 'tools[0].headers["x y"]', message: 'expected the value' },
    ]
    const [{ param, message }] = problems as [(typeof problems)[number]]
    const failure = new ApiFailure('VALIDATION_ERROR', `${param}: ${message}`, 0, { param, problems })
    expect(problemAt(failure, 'tools[1].url')).toBe('expected a URL')
    expect(problemAt(failure, 'tools')).toBe('[1].url: expected a URL')
    expect(problemAt(failure, 'tools[1]')).toBe('url: expected a URL')
    for (const other of ['name', 'tools[10].url', 'tools[1].u', 'tool']) expect(problemAt(failure, other)).toBe('')
    expect(problemAt(failure, 'tools[0].parameters')).toBe('properties.n.type: expected one')
    expect(problemAt(failure, 'tools[0].headers')).toBe('["x y"]: expected the value')
    const taken = new ApiFailure('CONFLICT', 'it is taken', 0, { reason: 'name_taken', param: 'name' })
    expect(problemAt(taken, 'name')).toBe('it is taken')
    expect(problemAt(new ApiFailure('NOT_FOUND', 'agent does not exist', 0), 'name')).toBe('')
    expect(problemAt(null, 'name')).toBe('')
  })

  test('of what no field shows are told together', () => {
    const problems = [
      { param: 'name', message: 'expected a text' },
      { param: 'tools[1].url', message: 'expected a URL' },
      { param: 'budget', message: 'expected a number' },
    ]
    const failure = new ApiFailure('VALIDATION_ERROR', 'name: expected a text', 0, { param: 'name', problems })
    expect(problemBeside(failure, ['name', 'tools', 'budget'])).toBe('')
    expect(problemBeside(failure, ['name', 'tool'])).toBe('tools[1].url: expected a URL; budget: expected a number')
    expect(problemBeside(failure, ['other'])).toBe('name: expected a text')
    expect(problemBeside(new ApiFailure('NOT_FOUND', 'agent does not exist', 0), ['name'])).toBe('agent does not exist')
    expect(problemBeside(null, ['name'])).toBe('')
  })
})

describe('differences', () => {
  const lines = (count: number, changed: readonly number[]) =>
    Array.from({ length: count }, (_, at) => (changed.includes(at) ? `changed ${at}` : `${at}`)).join('\n')
  const shown = (before: string, after: string) =>
    withoutSame(diffLines(before, after)).map(({ kind, text }) => `${kind} ${text}`)

  test('leave out long parts without a change, and say how long', () => {
    expect(shown(lines(30, []), lines(30, [20]))).toEqual([
      'left 17 lines',
      ...['same 17', 'same 18', 'same 19', 'removed 20', 'added changed 20', 'same 21', 'same 22', 'same 23'],
      'left 6 lines',
    ])
  })

  test('show short parts between changes, and each line once', () => {
    expect(shown(lines(12, []), lines(12, [1, 2, 11]))).toEqual([
      ...['same 0', 'removed 1', 'removed 2', 'added changed 1', 'added changed 2', 'same 3', 'same 4', 'same 5'],
      ...['same 6', 'same 7', 'same 8', 'same 9', 'same 10', 'removed 11', 'added changed 11'],
    ])
  })

  test('are none between equal texts', () => {
    expect(shown('a\nb', 'a\nb')).toEqual([])
  })
})
