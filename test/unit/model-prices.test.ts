import { expect, test } from 'bun:test'
import { createPrices, type PriceTable, parseModelPrices } from '../../src/conventions/prices.ts'

const MILLION = { inputTokens: 1_000_000, outputTokens: 1_000_000 }

function parse(text: string): PriceTable {
  const result = parseModelPrices(text)
  if ('problem' in result) throw new Error(result.problem)
  return result.prices
}

test('known models and their dated snapshots have a price', () => {
  const prices = createPrices()
  expect(prices.costUsd('gpt-4o', { inputTokens: 1000, outputTokens: 100 })).toBeCloseTo(0.0035, 10)
  expect(prices.costUsd('gpt-4o-2024-08-06', MILLION)).toBe(12.5)
  expect(prices.costUsd('gpt-4o-mini-2024-07-18', MILLION)).toBe(0.75)
  expect(prices.costUsd('claude-sonnet-4-5-20250929', MILLION)).toBe(18)
  expect(prices.costUsd('claude-3-5-haiku-latest', MILLION)).toBe(4.8)
  expect(prices.costUsd('gemini-2.5-pro', MILLION)).toBe(11.25)
  expect(prices.costUsd('gpt-4o', { inputTokens: 0, outputTokens: 0 })).toBe(0)
})

test('the cost of an unknown model is null, not 0', () => {
  for (const model of ['', 'llama3', 'gpt-4o-audio', 'constructor', '__proto__', 'gpt-4o-2024-08'])
    expect(createPrices().costUsd(model, MILLION)).toBeNull()
})

test("the operator's prices take precedence, then a full name, then the longest prefix", () => {
  const prices = createPrices(
    parse(
      '{"gpt-*": {"input": 1, "output": 1}, "gpt-4o*": {"input": 2, "output": 2}, "gpt-4o": {"input": 3, "output": 3}}',
    ),
  )
  const cost = (model: string) => prices.costUsd(model, MILLION)
  expect(['gpt-4o', 'gpt-4o-mini', 'gpt-5', 'o3'].map(cost)).toEqual([6, 4, 2, 10])
  expect(createPrices(parse('{"*": {"input": 0, "output": 0}}')).costUsd('anything', MILLION)).toBe(0)
})

test('the highest price is the maximum of all known prices', () => {
  expect(createPrices().highest()).toEqual({ input: 15, output: 75 })
  expect(createPrices(parse('{"x": {"input": 80, "output": 1}}')).highest()).toEqual({ input: 80, output: 75 })
})

test.each([
  '',
  'nonsense',
  '[]',
  'null',
  '{"x": 1}',
  '{"x": {"input": 1}}',
  '{"x": {"input": "1", "output": 1}}',
  '{"x": {"input": -1, "output": 1}}',
  '{"x": {"input": 1e999, "output": 1}}',
  '{"x": {"input": 1, "output": 1, "cached": 1}}',
  '{"": {"input": 1, "output": 1}}',
  '{"a*b": {"input": 1, "output": 1}}',
])('rejects MODEL_PRICES=%s and says what it must be', (text) => {
  expect(parseModelPrices(text)).toEqual({ problem: expect.stringMatching(/^must be a JSON object like/) })
})
