import { expect, test } from 'bun:test'
import { parseJson, stringMember } from '../../src/base/http/json-reader.ts'
import { hasMoreValues, JSON_VALUES_MAX } from '../../src/base/http/json-scan.ts'
import { RawJson } from '../../src/base/raw-json.ts'

/** What bounds the work for JSON before it is done (docs/api.md#request-limits). */

const parsed = (text: string) => parseJson(new TextEncoder().encode(text), 128)
const list = (count: number) => `[${Array(count).fill('1')}]`

test('a body has a limit of values, wherever they are', () => {
  // The body and the list count, too.
  expect(parsed(`{"x":${list(JSON_VALUES_MAX - 2)}}`)).toHaveProperty('x')
  const refused = `body: expected at most ${JSON_VALUES_MAX} values outside of free-form objects`
  expect(() => parsed(`{"x":${list(JSON_VALUES_MAX - 1)}}`)).toThrow(refused)
  const members = Array.from({ length: JSON_VALUES_MAX }, (_, n) => `"${n}":{}`)
  expect(() => parsed(`{${members}}`)).toThrow(refused)
})

test('a free-form object may have any number of values', () => {
  expect(parsed(`{"input":{"x":${list(JSON_VALUES_MAX * 2)}}}`)).toHaveProperty('input')
})

test('values are counted outside of texts', () => {
  expect(hasMoreValues('[1,{"a":2}]', 3)).toBe(true)
  expect(hasMoreValues(`["${',[{'.repeat(10)}"]`, 4)).toBe(false)
})

test.each<[string, string | undefined]>([
  ['{"message":"a"}', 'a'],
  ['{ "x" : {"message":"inner"} , "\\u006dessage" : "é\\n" }', 'é\n'],
  ['{"message":"a","message":"b"}', 'b'],
  ['{"message":"a","message":1}', undefined],
  ['{"other":[1,"message"]}', undefined],
  ['{}', undefined],
])('the message of %s is read as JSON.parse reads it', (text, message) => {
  expect(stringMember(new RawJson(text), 'message')).toBe(message)
})
