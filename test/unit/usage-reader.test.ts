import { expect, test } from 'bun:test'
import { mayReportUsage, UsageReader } from '../../src/activity/runs/usage-reader.ts'
import { usageOf } from '../../src/base/conventions/payload.ts'
import { createPrices } from '../../src/base/conventions/prices.ts'
import { USAGE_NAMES } from '../../src/base/conventions/usage-names.ts'
import { parseIntact } from '../../src/base/intact-json.ts'
import { eventsOfType } from '../../src/stores/clickhouse/native-reader.ts'
import { EventBlock } from '../../src/stores/journal/blocks/event-block.ts'
import { batchOf, runRef } from '../support/events.ts'
import { seededRandom } from '../support/random.ts'

const AT = Date.UTC(2025, 10, 1)
const prices = createPrices({ m: { input: 1, output: 10 }, dear: { input: 100, output: 100 } })
const reader = new UsageReader(await prices.loaded())

/** Reads a payload from the middle of other bytes, as in a block. */
function read(payload: object | string) {
  const text = typeof payload === 'string' ? payload : JSON.stringify(payload)
  const block = Buffer.from(`"}x${text}","cost_usd":1e6}"`)
  return reader.read(block, 3, AT)
}

const NO_PARTS = {
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  cacheWrite1hTokens: 0,
  reasoningTokens: 0,
  audioInputTokens: 0,
  audioOutputTokens: 0,
}
const use = (inputTokens: number, outputTokens: number, costUsd: number, parts: Partial<typeof NO_PARTS> = {}) => ({
  ...{ inputTokens, outputTokens, costUsd },
  ...NO_PARTS,
  ...parts,
})

test('tokens and cost are read as reported', () => {
  const payload = { 'gen_ai.usage.input_tokens': 100, 'gen_ai.usage.output_tokens': 20, cost_usd: 0.125 }
  expect(read(payload)).toEqual(use(100, 20, 0.125))
  expect(read({ ...payload, model: 'm' })).toEqual(use(100, 20, 0.125))
  expect(read(JSON.stringify(payload, null, 2))).toEqual(use(100, 20, 0.125))
  expect(read({ gen_ai: { usage: { input_tokens: 1, output_tokens: 2 }, request: { model: 'm' } } })).toEqual(
    use(1, 2, 0.000021),
  )
})

test('a call without a cost is priced by its model: that of the response, of the request, then `model`', () => {
  const tokens = { 'gen_ai.usage.input_tokens': 1_000_000, 'gen_ai.usage.output_tokens': 1_000_000 }
  expect(read({ ...tokens, model: 'm' })).toEqual(use(1e6, 1e6, 11))
  expect(read({ ...tokens, model: 'dear', 'gen_ai.request.model': 'm' })).toEqual(use(1e6, 1e6, 11))
  expect(read({ 'gen_ai.response.model': 'm', 'gen_ai.request.model': 'dear', ...tokens })).toEqual(use(1e6, 1e6, 11))
  expect(read({ 'gen_ai.response.model': 'own-build-7', 'gen_ai.request.model': 'm', ...tokens })).toEqual(
    use(1e6, 1e6, 11),
  )
  expect(read({ ...tokens, model: 'unknown' })).toEqual(use(1e6, 1e6, 0))
  expect(read(tokens)).toEqual(use(1e6, 1e6, 0))
  expect(read({ ...tokens, cost_usd: 0, model: 'm' })).toEqual(use(1e6, 1e6, 0))
})

test('the older names of OpenTelemetry, and those of OpenInference and the Vercel AI SDK, count where the newer are missing', () => {
  expect(read({ 'gen_ai.usage.prompt_tokens': 1, 'gen_ai.usage.completion_tokens': 2 })).toEqual(use(1, 2, 0))
  expect(read({ 'llm.token_count.prompt': 1, 'llm.token_count.completion': 2 })).toEqual(use(1, 2, 0))
  expect(read({ 'ai.usage.promptTokens': 1, 'ai.usage.outputTokens': 2, 'gen_ai.usage.cost': 3 })).toEqual(use(1, 2, 3))
  const both = { 'gen_ai.usage.prompt_tokens': 9, 'gen_ai.usage.input_tokens': 1, 'ai.usage.promptTokens': 9 }
  expect(read(both)).toEqual(use(1, 0, 0))
})

test('the dashboard shows the tokens and the cost that are counted, under every name and in every form', () => {
  const shown = (json: string) => {
    const { model: _, ...usage } = usageOf(parseIntact(json))
    return usage
  }
  const values = ['7', '"7"', '7.0', '7.5', '"7.5"', '-1', '""', '"x"', 'null', 'true', '[7]', '{"a":7}', '1e13', '1e2']
  const { model: _, ...numbers } = USAGE_NAMES
  const names = Object.values(numbers).flat()
  for (const name of names) {
    for (const form of formsOf(name)) {
      expect(mayReportUsage(Buffer.from(form))).toBe(true)
      for (const value of values) {
        const json = form.replace('VALUE', value)
        expect({ json, ...shown(json) }).toEqual({ json, ...(read(json) ?? use(0, 0, 0)) })
      }
    }
  }
})

/** The name as a key, beside another name, and with each of its dots as part of a key or between objects. */
function formsOf(name: string): string[] {
  const dots = name.split('.').length - 1
  const nested = Array.from({ length: 2 ** dots }, (_, separates) => {
    let dot = 0
    const keys = name.replace(/\./g, () => (separates & (1 << dot++) ? '\n' : '.')).split('\n')
    return keys.reduceRight((inner, key) => `{"x": {}, ${JSON.stringify(key)}: ${inner}, "y": [1]}`, 'VALUE')
  })
  return [`{"${name}": VALUE, "ai.usage.promptTokens": 3}`, ...nested]
}

test('usage counts as people write it, and as providers return it', () => {
  expect(read({ model: 'm', tokens: { in: 812, out: 64 } })).toEqual(use(812, 64, 0.001452))
  const openai = { prompt_tokens: 10, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 4 } }
  expect(read({ model: 'm', usage: openai })).toEqual(use(10, 5, 0.00006, { cacheReadTokens: 4 }))
  expect(read({ usage: { input_tokens: 7, cache_read_input_tokens: 3, output_tokens: 2 }, cost: 0.5 })).toEqual(
    use(10, 2, 0.5, { cacheReadTokens: 3 }),
  )
  expect(read({ ...openai, cost_usd: 0.25, cost: 9 })).toEqual(use(10, 5, 0.25, { cacheReadTokens: 4 }))
  expect(read({ 'gen_ai.usage.input_tokens': 1, usage: { prompt_tokens: 100, completion_tokens: 2 } })).toEqual(
    use(1, 2, 0),
  )
  expect(read({ usage: { usage: { input_tokens: 1 } }, tokens: [{ in: 1 }], input_tokens: [1] })).toBeNull()
  const shown = usageOf({ usage: { ...openai, completion_tokens_details: { reasoning_tokens: 2 } } })
  expect(shown).toMatchObject({ inputTokens: 10, cacheReadTokens: 4, outputTokens: 5, reasoningTokens: 2 })
})

test('the page about usage lists every name, in order of preference', async () => {
  const text = await Bun.file('docs/usage.md').text()
  const rows = [...text.matchAll(/^\| .*? \| (`.*) \|$/gm)]
  const listed = rows.map(([, list]) => [...list!.matchAll(/`([^`]+)`/g)].map(([, name]) => name!))
  const names = [
    ...[USAGE_NAMES.inputTokens, USAGE_NAMES.outputTokens, USAGE_NAMES.costUsd, USAGE_NAMES.model],
    ...[USAGE_NAMES.cacheReadTokens, USAGE_NAMES.cacheWriteTokens],
    ...[USAGE_NAMES.cacheWrite5mTokens, USAGE_NAMES.cacheWrite1hTokens, USAGE_NAMES.reasoningTokens],
    ...[USAGE_NAMES.audioInputTokens, USAGE_NAMES.audioOutputTokens, USAGE_NAMES.totalTokens],
  ]
  expect(listed).toEqual(names.map((each) => [...each]))
})

test('values that are not plausible numbers are ignored', () => {
  for (const value of [-1, 1.5, '', ' 12', '1.5', '0x1', '-1', null, true, [1], { a: 1 }, 1e300])
    expect(read({ 'gen_ai.usage.input_tokens': value })).toBeNull()
  for (const value of [-0.1, '+1', null, 1e300]) expect(read({ cost_usd: value })).toBeNull()
  expect(read('{"gen_ai.usage.input_tokens":1e999,"cost_usd":1e999}')).toBeNull()
  expect(read('{}')).toBeNull()
  expect(read({ tokens: { n: 5 }, usage: null, text: '"cost_usd":1' })).toBeNull()
  expect(read({ data: { usage: { input_tokens: 5 } }, list: [{ cost_usd: 1 }] })).toBeNull()
})

test('agrees with JSON.parse about any payload', () => {
  const random = seededRandom('model use')
  const text = () => {
    const piece = random.pick(['\\', '"', '\\"', 'x'.repeat(random.int(0, 90)), 'é\n', '{"cost_usd":5}'])
    return piece.repeat(random.int(0, 4))
  }
  const value = (): unknown =>
    random.pick<() => unknown>([
      text,
      () => random.int(0, 999),
      () => ({ [text()]: text() }),
      () => [text(), 1, null],
    ])()
  for (let trial = 0; trial < 3_000; trial++) {
    const members: [string, unknown][] = Array.from({ length: random.int(0, 6) }, () => [`${text()}~`, value()])
    const known = { 'gen_ai.usage.input_tokens': random.int(0, 9), cost_usd: random.int(0, 9) / 4 }
    for (const [name, number] of Object.entries(known))
      if (random.bool()) members.splice(random.int(0, members.length), 0, [name, number])
    const payload = Object.fromEntries(members)
    const { 'gen_ai.usage.input_tokens': input, cost_usd: cost } = payload as Partial<typeof known>
    const expected = input === undefined && cost === undefined ? null : use(input ?? 0, 0, cost ?? 0)
    expect(read(JSON.stringify(payload, null, random.int(0, 2)))).toEqual(expected)
  }
})

test('finds the events of one type in a block, and no others', () => {
  const random = seededRandom('payloads of a type')
  for (let trial = 0; trial < 200; trial++) {
    const block = new EventBlock()
    const events = Array.from({ length: random.int(1, 40) }, (_, n) => ({
      type: random.pick(['llm.call', 'llm.calls', 'tool.call', 'x'.repeat(150), 's']),
      payload: { n, filling: 'y'.repeat(random.pick([0, 10, 300, 20_000])) },
    }))
    block.add(batchOf(runRef(), events), 1_700_000_000_000)
    const bytes = Buffer.concat(block.build(7, 1_700_000_000_000, 'epoch-1'))
    const seen: unknown[] = []
    for (const { row, start, end, occurredAt } of eventsOfType(bytes, Buffer.from('llm.call'))) {
      seen.push([row, JSON.parse(bytes.toString('utf8', start, end)).n, occurredAt])
    }
    expect(seen).toEqual(events.flatMap(({ type }, n) => (type === 'llm.call' ? [[n, n, 1_700_000_000_000]] : [])))
  }
})
