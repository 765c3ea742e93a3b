import { describe, expect, test } from 'bun:test'
import { linearRegExp, PatternUnsupported, TooCostly } from '../../src/outbound/model/linear-regexp.ts'
import { createSchemaChecks } from '../../src/outbound/model/output-schema.ts'
import { isStrictSchema } from '../../src/outbound/model/strict-schema.ts'
import { seededRandom } from '../support/random.ts'

const { checkOutput, checkArguments, schemaProblem } = createSchemaChecks()
const ORDER = {
  type: 'object',
  properties: {
    id: { type: 'string' },
    state: { enum: ['open', 'done'] },
    items: { type: 'array', items: { type: 'object', properties: { price: { type: 'number' } } } },
  },
  required: ['id'],
  additionalProperties: false,
}

/** CPU milliseconds too: nothing else runs meanwhile. */
function timed<T>(run: () => T): { result: T; ms: number } {
  const before = process.cpuUsage()
  const result = run()
  const { user, system } = process.cpuUsage(before)
  return { result, ms: (user + system) / 1000 }
}

describe('an output', () => {
  test.each(['{"id": "1"}', ' \n{"id": "1"}\n', '```json\n{"id": "1"}\n```', '```\n{"id": "1"}```\n'])(
    'is read from %j',
    (text) => {
      expect(checkOutput(ORDER, text)).toEqual({ value: { id: '1' } })
    },
  )

  test.each([
    ['{"id": 1}', 'id: must be string'],
    ['{}', "the value: must have required property 'id'"],
    ['{"id": "1", "extra": 2}', 'the value: must NOT have additional properties ("extra")'],
    ['{"id": "1", "state": "lost"}', 'state: must be equal to one of the allowed values ["open","done"]'],
    ['{"id": "1", "items": [{}, {"price": "5"}]}', 'items[1].price: must be number'],
    ['[]', 'the value: must be object'],
    ['{"id": 1, "state": 2}', 'id: must be string; state: must be equal to one of the allowed values ["open","done"]'],
  ])('%s gets a message that says what to fix', (text, problem) => {
    expect(checkOutput(ORDER, text)).toEqual({ problem })
  })

  test.each(['', 'Here you are: {"id": "1"}', '{"id": "1"} {"id": "2"}', '```json\n{"id": "1"}', '{"id": '])(
    'rejects what is not JSON: %j',
    (text) => {
      expect(checkOutput(ORDER, text)).toEqual({ problem: expect.stringMatching(/^expected JSON and nothing else; /) })
    },
  )

  test('keeps the message short for thousands of mistakes', () => {
    const items = Array.from({ length: 1_000 }, () => ({ price: 'x'.repeat(20) }))
    const { problem } = checkOutput(ORDER, JSON.stringify({ id: '1', items })) as { problem: string }
    expect(problem).toContain('items[4].price: must be number; and 995 more')
    const names = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`${i}`.repeat(300), 1]))
    expect((checkOutput(ORDER, JSON.stringify(names)) as { problem: string }).problem.length).toBeLessThan(650)
  })
})

describe('arguments', () => {
  test('empty arguments are an empty object', () => {
    expect(checkArguments({ type: 'object' }, '')).toEqual({ value: {} })
    expect(checkArguments(ORDER, ' ')).toEqual({ problem: "the value: must have required property 'id'" })
  })

  test.each(['[]', 'null', '"x"', '5'])('rejects %s, which is not an object, whatever the schema says', (text) => {
    expect(checkArguments({}, text)).toEqual({ problem: expect.stringMatching(/^expected a JSON object; got /) })
  })

  test('inherited property names are checked like any other', () => {
    expect(checkArguments({ properties: { constructor: { type: 'string' } } }, '{}')).toEqual({ value: {} })
    expect(checkArguments({ required: ['toString'] }, '{}')).toHaveProperty('problem')
    expect(checkArguments({ properties: { __proto__: { type: 'object' } } }, '{"__proto__": {"a": 1}}')).toHaveProperty(
      'value',
    )
    expect(({} as Record<string, unknown>).a).toBeUndefined()
  })
})

describe('a schema', () => {
  test.each<[string, Record<string, unknown>]>([
    ["can't resolve reference #/$defs/none", { properties: { a: { $ref: '#/$defs/none' } } }],
    [
      "can't resolve reference https://example.com/s.json",
      { properties: { a: { $ref: 'https://example.com/s.json' } } },
    ],
    ['type must be JSONType', { properties: { a: { type: 'text' } } }],
    ['"$async" is not supported', { $async: true }],
    ['uses a lookbehind, which is not supported', { properties: { a: { pattern: '(?<=a)b' } } }],
    ['nested deeper than 128 levels', deep(200)],
    ['longer than 65536 characters', { description: 'x'.repeat(70_000) }],
    ['uses too many repetitions', { allOf: Array.from({ length: 30 }, (_, i) => ({ pattern: `${i}a{900}` })) }],
    ['more than 1000 keywords and properties', { properties: properties(501, { type: 'string' }) }],
    ['more than 1000 keywords and properties', { anyOf: Array(400).fill({ pattern: 'a' }) }],
    ['more than 1000 keywords and properties', { patternProperties: properties(350, { type: 'string' }) }],
  ])('reports a schema that cannot be used: %s', (problem, schema) => {
    const expected = expect.stringMatching(/^the schema cannot be used: /)
    expect(schemaProblem(schema)).toEqual(expected)
    expect(schemaProblem(schema)).toContain(problem)
    expect(checkOutput(schema, '{}')).toEqual({ problem: expected })
    expect(checkArguments(schema, '{}')).toEqual({ problem: expected })
  })

  test.each<[string, Record<string, unknown>, string]>([
    ['2020-12', { prefixItems: [{ type: 'string' }] }, '[1]'],
    ['2019-09', { $schema: 'https://json-schema.org/draft/2019-09/schema', items: [{ type: 'string' }] }, '[1]'],
    ['draft-07', { $schema: 'http://json-schema.org/draft-07/schema#', items: [{ type: 'string' }] }, '[1]'],
    ['no $schema, in the style of an older draft', { items: [{ type: 'string' }] }, '[1]'],
    [
      'recursive references',
      { $ref: '#/$defs/n', $defs: { n: { items: { $ref: '#/$defs/n' }, type: 'array' } } },
      '[[1]]',
    ],
    ['a reference to its root', { type: 'array', items: { $ref: '#' } }, '[[1]]'],
    ['an $id', { $id: 'https://example.com/a', type: 'string' }, '1'],
    ['the same $id with another meaning', { $id: 'https://example.com/a', type: 'boolean' }, '1'],
    ['equal items', { uniqueItems: true }, '[{"a": 1, "b": [2]}, {"b": [2], "a": 1}]'],
  ])('applies a schema with %s', (_name, schema, wrong) => {
    expect(schemaProblem(schema)).toBeUndefined()
    expect(checkOutput(schema, wrong)).toHaveProperty('problem')
  })

  test('a large schema may describe its properties and list their values', () => {
    const state = { type: 'string', description: 'One of many.', enum: Array.from({ length: 15 }, (_, i) => `v${i}`) }
    const schema = { type: 'object', properties: properties(300, state), required: Object.keys(properties(300, {})) }
    expect(schemaProblem(schema)).toBeUndefined()
    expect(checkOutput(schema, '{"p0": "none"}')).toEqual({ problem: expect.stringContaining("property 'p1'") })
  })

  test('ignores unknown formats and keywords', () => {
    const schema = { properties: { a: { format: 'colour', type: 'string', 'x-order': 1 } } }
    expect(checkOutput(schema, '{"a": "red"}')).toEqual({ value: { a: 'red' } })
  })

  test('cannot refer to another schema', () => {
    expect(schemaProblem({ $id: 'https://example.com/secret', type: 'object' })).toBeUndefined()
    expect(schemaProblem({ $ref: 'https://example.com/secret' })).toContain("can't resolve reference")
  })

  test.each<[string, Record<string, unknown>, unknown]>([
    ['a pattern', { items: { pattern: '^(a+)+$' } }, Array(100).fill(`${'a'.repeat(2_000)}!`)],
    ['items to compare', { uniqueItems: true }, Array.from({ length: 60_000 }, (_, i) => ({ i }))],
    ['references', { properties: { n: { allOf: [{ $ref: '#' }, { $ref: '#' }, { $ref: '#' }] } } }, nested(60)],
    ['choices', { items: { anyOf: Array.from({ length: 900 }, (_, i) => ({ const: i })) } }, Array(45_000).fill(899)],
    ['depth', { additionalProperties: { $ref: '#' } }, nested(900)],
    ['long lists of choices', { items: { enum: [...Array(30_000).fill(1), 2] } }, Array(32_000).fill(2)],
    [
      'objects to choose from',
      { items: { enum: [...Array(8_000).fill({ a: 1 }), { a: 2 }] } },
      Array(7_500).fill({ a: 2 }),
    ],
    ['items to compare again and again', { allOf: Array(450).fill({ uniqueItems: true }) }, numbers(11_000)],
    ['names that are missing', { items: { required: numbers(9_000).map(String) } }, Array(20_000).fill({})],
    [
      'items that are wrong in many ways',
      { items: { allOf: Array(110).fill({ type: 'string' }) } },
      Array(30_000).fill(1),
    ],
    ['calculations', { items: { allOf: Array(490).fill({ multipleOf: 0.01 }) } }, Array(32_000).fill(1)],
    ['looking ahead', { pattern: `(?:(?!b${'a'.repeat(4_800)}).)*$` }, 'c'.repeat(1_000_000)],
  ])('cannot block the process with %s', (_name, schema, value) => {
    const text = JSON.stringify(value)
    schemaProblem(schema)
    expect(timed(() => checkOutput(schema, text)).ms).toBeLessThan(1_500)
  })

  test.each([
    ['const', { const: { a: 1 } }, '{"valueOf": 1}'],
    ['enum', { enum: [{ a: 1 }] }, '{"toString": 1, "constructor": 1}'],
    ['uniqueItems', { uniqueItems: true }, '[{"toJSON": 1}, {"toJSON": 1}]'],
  ])('%s compares values that have the names of methods', (_name, keyword, wrong) => {
    expect(checkArguments({ properties: { a: keyword } }, `{"a": ${wrong}}`)).toEqual({
      problem: expect.stringMatching(/^a: must /),
    })
  })

  test('a string is not the object that it describes', () => {
    expect(checkArguments({ properties: { a: { const: {} } } }, '{"a": "{}"}')).toHaveProperty('problem')
    expect(checkArguments({ properties: { a: { uniqueItems: true } } }, '{"a": ["[]", [], "1", 1]}')).toHaveProperty(
      'value',
    )
  })

  test('a value that could not be written again is refused', () => {
    const deep = `{"a": ${'['.repeat(45_000)}${']'.repeat(45_000)}}`
    expect(checkArguments({ type: 'object' }, deep)).toEqual({ problem: 'it is nested too deeply' })
  })

  test('is compiled once', () => {
    const schema = () => ({ type: 'object', properties: properties(300, { type: 'string', maxLength: 5 }) })
    const first = timed(() => checkOutput(schema(), '{}')).ms
    // The collector may run in one of them.
    const later = Array.from({ length: 5 }, () => timed(() => checkOutput(schema(), '{}')).ms)
    expect(Math.min(...later)).toBeLessThan(first / 3)
  })
})

describe('a pattern', () => {
  test("matches like JavaScript's RegExp", () => {
    const random = seededRandom('patterns')
    const atoms = [
      'a',
      'b',
      '.',
      '[ab]',
      '[^a]',
      '\\d',
      '\\w',
      '\\b',
      '\\B',
      '^',
      '$',
      '👍',
      '\\u{1f44d}',
      '\\ud83d\\udc4d',
      '\\p{L}',
      '\\.',
      '[\\]^-]',
      '\\x61',
      '-',
    ]
    const part = (depth: number): string => {
      if (depth === 0 || random.bool(0.4)) return random.pick(atoms)
      const group = random.pick(['(', '(?:', '(?<n>', '(?=', '(?!'])
      const inner = Array.from({ length: random.int(0, 3) }, () => part(depth - 1)).join(random.bool(0.3) ? '|' : '')
      return `${group}${inner})`
    }
    const quantifier = () => random.pick(['', '', '', '*', '+', '?', '{2}', '{0,2}', '{1,}', '*?', '+?', '{0}'])
    let tried = 0
    while (tried < 3_000) {
      const pattern = Array.from({ length: random.int(1, 4) }, () => part(2) + quantifier()).join('')
      let native: RegExp
      try {
        native = new RegExp(pattern, 'u')
      } catch {
        continue
      }
      tried += 1
      const own = linearRegExp(pattern, { left: 1_000_000 })
      for (let i = 0; i < 5; i++) {
        const text = Array.from({ length: random.int(0, 6) }, () =>
          random.pick(['a', 'b', '1', '-', ' ', '👍', 'ä', '\n', '\ud83d']),
        ).join('')
        expect([pattern, text, own.test(text)]).toEqual([pattern, text, native.test(text)])
      }
    }
  })

  test('takes time linear in the text', () => {
    const budget = { left: 10_000_000 }
    for (const pattern of ['^(a+)+$', '^(a|a)*$', '(.*)*b', '^(?=(a*)*b)'])
      expect(linearRegExp(pattern, budget).test(`${'a'.repeat(500)}!`)).toBeFalse()
    expect(() => linearRegExp('a', { left: 100 }).test('b'.repeat(1_000))).toThrow(TooCostly)
  })

  test.each(['(a)\\1', '(?<n>a)\\k<n>', '(?<=a)b', '(?<!a)b', '((a{100}){100}){100}', '(){99999}'])(
    '%s is not supported',
    (pattern) => {
      expect(() => linearRegExp(pattern, { left: 1 })).toThrow(PatternUnsupported)
    },
  )

  test('reports a malformed pattern', () => {
    expect(() => linearRegExp('a(', { left: 1 })).toThrow(SyntaxError)
  })
})

describe('strict mode', () => {
  const closed = (properties: Record<string, unknown>) => ({
    type: 'object',
    properties,
    required: Object.keys(properties),
    additionalProperties: false,
  })

  test.each<[string, Record<string, unknown>]>([
    ['closed objects', closed({ a: { type: 'string' }, b: closed({ c: { type: ['number', 'null'], minimum: 0 } }) })],
    ['lists and choices', closed({ a: { type: 'array', items: { anyOf: [{ type: 'string' }, closed({})] } } })],
    ['references', { ...closed({ a: { $ref: '#/$defs/n' } }), $defs: { n: closed({ n: { $ref: '#/$defs/n' } }) } }],
    ['known formats', closed({ a: { type: 'string', format: 'date-time', description: 'When' } })],
  ])('accepts %s', (_name, schema) => {
    expect(isStrictSchema(schema)).toBeTrue()
  })

  test.each<[string, Record<string, unknown>]>([
    ['open objects', { ...closed({}), additionalProperties: true }],
    ['objects that may be open', { type: 'object', properties: {}, required: [] }],
    ['optional properties', { ...closed({ a: { type: 'string' } }), required: [] }],
    ['open objects inside', closed({ a: { type: 'array', items: { type: 'object' } } })],
    ['open objects in definitions', { ...closed({}), $defs: { a: { type: 'object' } } }],
    ['unknown keywords', closed({ a: { type: 'string', minLength: 1 } })],
    ['unknown formats', closed({ a: { type: 'string', format: 'colour' } })],
    ['an empty schema', closed({ a: {} })],
    ['lists of anything', closed({ a: { type: 'array' } })],
    ['a root that is not an object', { anyOf: [closed({})] }],
    ['boolean schemas', closed({ a: true })],
    ['endless nesting', deep(40)],
  ])('does not accept %s', (_name, schema) => {
    expect(isStrictSchema(schema)).toBeFalse()
  })

  test('ignores inherited properties', () => {
    expect(isStrictSchema(closed({ toString: { type: 'string' } }))).toBeTrue()
    expect(isStrictSchema({ ...closed({}), required: ['toString'] })).toBeFalse()
  })
})

function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i)
}

function deep(levels: number): Record<string, unknown> {
  const inner = levels === 0 ? {} : { n: deep(levels - 1) }
  return { type: 'object', properties: inner, required: Object.keys(inner), additionalProperties: false }
}

function properties(count: number, schema: object): Record<string, object> {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, schema]))
}

function nested(levels: number): unknown {
  return JSON.parse(`${'{"n":'.repeat(levels)}{}${'}'.repeat(levels)}`)
}
