import { expect, test } from 'bun:test'
import { createPrices, type PriceTable, parseModelPrices } from '../../src/base/conventions/prices.ts'
import { seededRandom } from '../support/random.ts'

const MILLION = { inputTokens: 1_000_000, outputTokens: 1_000_000 }

function parse(text: string): PriceTable {
  const result = parseModelPrices(text)
  if ('problem' in result) throw new Error(result.problem)
  return result.prices
}

const NOVEMBER = Date.UTC(2025, 10, 15)

async function costOf(model: string, usage = MILLION, at = NOVEMBER): Promise<number | null> {
  return (await createPrices().loaded()).costUsd(model, usage, at)
}

test('known models and their dated snapshots have a price', async () => {
  expect(await costOf('gpt-4o', { inputTokens: 1000, outputTokens: 100 })).toBeCloseTo(0.0035, 10)
  expect(await costOf('gpt-4o-2024-08-06')).toBe(12.5)
  expect(await costOf('gpt-4o-mini-2024-07-18')).toBe(0.75)
  expect(await costOf('claude-3-5-haiku-latest')).toBe(4.8)
  expect(await costOf('gpt-5.2')).toBe(15.75)
  expect(await costOf('gpt-4o', { inputTokens: 0, outputTokens: 0 })).toBe(0)
})

test('gateways put the name of the provider in front', async () => {
  const known = await costOf('claude-haiku-4-5')
  expect(known).toBe(6)
  expect(await costOf('anthropic/claude-haiku-4-5')).toBe(known)
  expect(await costOf('nobody/claude-haiku-4-5')).toBeNull()
})

test('a call costs what the price was at its time', async () => {
  const day = (text: string) => Date.parse(text)
  expect(await costOf('o3', MILLION, day('2025-06-09T23:59:59Z'))).toBe(50)
  expect(await costOf('o3', MILLION, day('2025-06-10T00:00:00Z'))).toBe(10)
  const prices = await createPrices().loaded()
  const times = ['2025-06-01T01:00:00Z', '2025-06-01T17:00:00Z', '2025-06-02T00:29:59Z', '2025-06-02T00:30:00Z']
  expect(times.map((time) => prices.costUsd('deepseek-chat', MILLION, day(time))?.toFixed(3))).toEqual([
    '1.370',
    '0.685',
    '0.685',
    '1.370',
  ])
})

test('some prices are higher for long prompts', async () => {
  expect(await costOf('claude-sonnet-4-5-20250929', { inputTokens: 200_000, outputTokens: 0 })).toBe(0.6)
  expect(await costOf('claude-sonnet-4-5-20250929', { inputTokens: 200_001, outputTokens: 1_000_000 })).toBe(23.700006)
})

test('the cost of an unknown model is null, not 0', async () => {
  const unknown = ['', 'llama3', 'gpt-4o-audio', 'constructor', '__proto__', 'gpt-4o-2024-08', '/', '/gpt-5', 'gpt-5/']
  for (const model of unknown) expect(await costOf(model)).toBeNull()
  expect(await costOf(`gpt-4o${' '.repeat(1_000_000)}`)).toBeNull()
})

test('a name is looked up once, however many others there are', async () => {
  const prices = await createPrices().loaded()
  for (let n = 0; n < 3_000; n++) expect(prices.costUsd(`gpt-none-${n}`, MILLION, NOVEMBER)).toBeNull()
  expect(prices.costUsd('gpt-4o', MILLION, NOVEMBER)).toBe(12.5)
})

test("the operator's prices take precedence, then a full name, then the longest prefix", async () => {
  const prices = await createPrices(
    parse(
      '{"gpt-*": {"input": 1, "output": 1}, "gpt-4o*": {"input": 2, "output": 2}, "gpt-4o": {"input": 3, "output": 3}}',
    ),
  ).loaded()
  const cost = (model: string) => prices.costUsd(model, MILLION, NOVEMBER)
  expect(['gpt-4o', 'gpt-4o-mini', 'gpt-5', 'o3'].map(cost)).toEqual([6, 4, 2, 10])
  const all = await createPrices(parse('{"*": {"input": 0, "output": 0}}')).loaded()
  expect(all.costUsd('anything', MILLION, NOVEMBER)).toBe(0)
})

test('costs are those that the package of the prices computes, for every model and all kinds of tokens', async () => {
  const { calcPrice, findProvider } = await import('@pydantic/genai-prices')
  const prices = await createPrices().loaded()
  const random = seededRandom('costs')
  let priced = 0
  for (const providerId of ['anthropic', 'openai', 'google', 'x-ai', 'mistral', 'aws']) {
    for (const { id } of findProvider({ providerId })?.models ?? []) {
      const usage = {
        cacheReadTokens: random.int(0, 90_000),
        cacheWriteTokens: random.int(10, 90_000),
        cacheWrite1hTokens: random.int(0, 10),
        audioInputTokens: random.int(0, 90_000),
        reasoningTokens: random.int(0, 900),
        audioOutputTokens: random.int(0, 900),
      }
      const inputTokens =
        usage.cacheReadTokens + usage.cacheWriteTokens + usage.audioInputTokens + random.int(0, 90_000)
      const outputTokens = usage.reasoningTokens + usage.audioOutputTokens + random.int(0, 900)
      const cost = prices.costUsd(id, { ...usage, inputTokens, outputTokens }, NOVEMBER)
      const asked = {
        ...{ input_tokens: inputTokens, output_tokens: outputTokens, cache_read_tokens: usage.cacheReadTokens },
        ...{ cache_write_tokens: usage.cacheWriteTokens, cache_write_1h_tokens: usage.cacheWrite1hTokens },
        ...{ input_audio_tokens: usage.audioInputTokens, output_audio_tokens: usage.audioOutputTokens },
        ...{ output_reasoning_tokens: usage.reasoningTokens, cache_audio_read_tokens: 0 },
      }
      const timestamp = new Date(NOVEMBER)
      const expected = calcPrice(asked, id, { timestamp }) ?? calcPrice(asked, id, { timestamp, providerId: 'aws' })
      if (cost === null || expected === null) continue
      priced++
      // Both add floating-point numbers, in another order.
      expect({ id, isEqual: Math.abs(cost - expected.total_price) < 1e-9, cost }).toMatchObject({ id, isEqual: true })
    }
  }
  expect(priced).toBeGreaterThan(200)
})

test('the highest price is the maximum of all known prices', async () => {
  const { input, output } = (await createPrices().loaded()).highest()
  expect([input >= 75, output >= 150, Number.isFinite(input + output)]).toEqual([true, true, true])
  const raised = await createPrices(parse('{"x": {"input": 8000, "output": 1}}')).loaded()
  expect(raised.highest()).toMatchObject({ input: 8000, output })
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
