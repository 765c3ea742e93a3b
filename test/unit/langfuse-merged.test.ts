import { expect, spyOn, test } from 'bun:test'
import { BatchScan } from '../../src/doors/langfuse/batch-scan.ts'
import { METADATA } from '../../src/doors/langfuse/fields.ts'
import { ObjectUnion } from '../../src/doors/langfuse/json-objects.ts'
import { Merged } from '../../src/doors/langfuse/merged.ts'
import { restore } from '../../src/doors/langfuse/payload.ts'

/** Merges events with these metadata, each with the time at which it was sent. */
function merge(values: readonly (readonly [sentAt: number, metadata: string])[]): Merged {
  const events = values.map(([, metadata]) => `{"body":{"metadata":${metadata}}}`)
  const scan = new BatchScan(Buffer.from(`{"batch":[${events.join()}]}`))
  for (const _ of scan.read(100));
  const merged = new Merged(null, scan.text)
  values.forEach(([sentAt], index) => {
    merged.merge(scan, index, sentAt)
  })
  merged.settle()
  return merged
}

test('large metadata are read once for a batch, not again after each value that cannot be united with them', () => {
  const large = `{${Array.from({ length: 3_500 }, (_, n) => `"member ${n}":1`).join()}}`
  const opened = spyOn(ObjectUnion, 'of')
  try {
    for (const refused of ['"a text"', `{"a":"${'x'.repeat(20_000)}"}`]) {
      opened.mockClear()
      const merged = merge([[100, large], ...Array.from({ length: 50 }, () => [50, refused] as const)])
      expect(merged.json(METADATA)).toBe(large)
      expect(opened).toHaveBeenCalledTimes(1)
    }
  } finally {
    opened.mockRestore()
  }
})

test('metadata after a value that cannot be united: a later one replaces, an earlier one changes nothing', () => {
  const united = merge([
    [100, '{"a":1}'],
    [50, '"earlier"'],
    [110, '{"b":2}'],
    [60, '{"a":0,"c":3}'],
  ])
  expect(JSON.parse(united.json(METADATA)!)).toEqual({ a: 1, b: 2, c: 3 })
  const replaced = merge([
    [100, '{"a":1}'],
    [120, '"later"'],
    [110, '{"b":2}'],
  ])
  expect(replaced.json(METADATA)).toBe('"later"')
})

test('a call that another door has reported with usage has usage: that of a later update is not counted again', () => {
  expect(restore('{"gen_ai.usage.input_tokens":5,"gen_ai.request.model":"m"}', 100).hasUsage).toBe(true)
  expect(restore('{"gen_ai.request.model":"m"}', 100).hasUsage).toBe(false)
})
