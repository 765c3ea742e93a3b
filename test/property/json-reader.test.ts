import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { ApiError } from '../../src/base/errors.ts'
import { parseJson } from '../../src/base/http/json-reader.ts'
import { encodeJson, RawJson } from '../../src/base/raw-json.ts'

const SEED = Number(process.env.SEED ?? Date.now() % 2 ** 31)
const RUNS = { seed: SEED, numRuns: 2_000 }
const encode = (text: string) => new TextEncoder().encode(text)

function attempt<T>(read: () => T): { value: T } | 'refused' {
  try {
    return { value: read() }
  } catch (error) {
    if (error instanceof SyntaxError || (error instanceof ApiError && error.code === 'VALIDATION_ERROR'))
      return 'refused'
    throw error
  }
}

function isTwice(text: string): boolean {
  try {
    parseJson(encode(text), 100)
    return false
  } catch (error) {
    return (error as Error).message.includes('each member name once')
  }
}

describe(`the JSON reader (SEED=${SEED})`, () => {
  test('reads what JSON.parse reads, for any document', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        const document = `{"value":${text}}`
        expect(parseJson(encode(document), 100)).toEqual(JSON.parse(document))
      }),
      RUNS,
    )
  })

  test('rejects what JSON.parse rejects, for documents broken in one place', () => {
    fc.assert(
      fc.property(
        fc.json(),
        fc.nat(),
        fc.constantFrom('', '"', '{', '}', ',', ':', '\\', '0', '-', '.', 'e', '\n', '\u0000', 'x'),
        (text, position, insert) => {
          const at = position % (text.length + 1)
          const broken = text.slice(0, at) + insert + text.slice(at + (position % 2))
          if (!broken.isWellFormed()) return
          const read = attempt(() => parseJson(encode(broken), 100))
          // The change may have duplicated a member name, which JSON.parse accepts.
          if (read === 'refused' && isTwice(broken)) return
          expect(read).toEqual(attempt(() => JSON.parse(broken)))
        },
      ),
      RUNS,
    )
  })

  test('rejects an object with a duplicate member name, in any spelling', () => {
    for (const [text, at] of [
      ['{"a":1,"a":1}', 8],
      ['{"a":1, "\\u0061":1}', 9],
      ['{"__proto__":1,"b":{},"__proto__":2}', 23],
    ] as const)
      expect(() => parseJson(encode(text), 100)).toThrow(
        `body: not valid JSON: expected each member name once at line 1 column ${at}; got "\\""`,
      )
  })

  test('keeps free-form objects byte for byte', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (input) => {
        const text = JSON.stringify(input, null, 1)
        const body = parseJson(
          encode(`{ "input" : ${text} , "task":{"output":${text}} , "other":{"input":${text}} }`),
          100,
        ) as Record<string, unknown>
        expect(body.input).toEqual(new RawJson(text))
        expect(body.task).toEqual({ output: new RawJson(text) })
        expect(body.other).toEqual({ input: JSON.parse(text) })
        expect(encodeJson({ data: body.input })).toBe(`{"data":${text}}`)
      }),
      RUNS,
    )
  })
})

test('64-bit integers, __proto__ and escaped NULs round-trip exactly', () => {
  const text = '{"n":12345678901234567890,"f":1.0,"__proto__":{"x":1},"s":"\\u0000\\ud800"}'
  const body = parseJson(encode(`{"metadata":${text},"__proto__":{"x":1}}`), 100) as Record<string, unknown>
  expect(encodeJson(body.metadata)).toBe(text)
  expect(Object.keys(body)).toEqual(['metadata', '__proto__'])
  expect(({} as Record<string, unknown>).x).toBeUndefined()
})

test('an error names line, column and the expected token', () => {
  expect(() => parseJson(encode('{\n "a": tru }'), 100)).toThrow('expected a value at line 2 column 7; got "t"')
  expect(() => parseJson(encode('{"a":1'), 100)).toThrow("expected ',' or '}' at line 1 column 7; the body ends there")
})

test('limits nesting far below what would exhaust the stack', () => {
  const nested = (levels: number) => encode(`${'['.repeat(levels)}${']'.repeat(levels)}`)
  expect(parseJson(nested(100), 100)).toBeArray()
  expect(() => parseJson(nested(101), 100)).toThrow('less nesting')
  expect(() => parseJson(nested(1_000_000), 100)).toThrow('less nesting')
})
