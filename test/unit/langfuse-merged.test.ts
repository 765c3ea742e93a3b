import { expect, spyOn, test } from 'bun:test'
import { BatchScan } from '../../src/doors/langfuse/batch-scan.ts'
import { FIELDS, INPUT, METADATA, NAME, OUTPUT } from '../../src/doors/langfuse/fields.ts'
import { ObjectUnion } from '../../src/doors/langfuse/json-objects.ts'
import { Merged } from '../../src/doors/langfuse/merged.ts'
import { restore, writePayload } from '../../src/doors/langfuse/payload.ts'
import { Bytes } from '../../src/stores/clickhouse/bytes.ts'

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

test('a stored state is read again as it was, with the time of each value, whether the payload has it or not', () => {
  const bodies = [
    [100, '{"name":"n","endTime":"2026-01-31T09:30:00Z","input":{"q":1},"metadata":{"a":1}}'],
    [250, '{"output":"o","metadata":{"b":2}}'],
  ] as const
  const batch = bodies.map(([, body]) => `{"body":${body}}`)
  const scan = new BatchScan(Buffer.from(`{"batch":[${batch.join()}]}`))
  for (const _ of scan.read(100));
  const merged = new Merged(null, scan.text)
  bodies.forEach(([sentAt], index) => {
    merged.merge(scan, index, sentAt)
  })
  merged.settle()
  for (const hasContent of [true, false]) {
    const out = new Bytes()
    const { start, end } = writePayload(out, merged, { bytesMax: 100_000, hasContent, head: '"trace_id":"t"' })
    const payload = out.buffer.toString('utf8', start, end)
    expect(JSON.parse(payload)).toMatchObject({ is_created: false, sent_at: 100, sent_at_of: { metadata: 250 } })
    const restored = restore(payload, 999)
    expect([restored.isCreated, restored.sentAt]).toEqual([false, merged.sentAt])
    const stored = FIELDS.map((_, field) => merged.json(field))
    if (!hasContent) stored[INPUT] = stored[OUTPUT] = undefined
    expect(FIELDS.map((_, field) => restored.json(field))).toEqual(stored)
  }
  // Of a payload without times, all values count as sent when it was stored.
  const older = restore('{"name":"n","merged_at":{"100":1}}', 999)
  expect([older.json(NAME), older.sentAt[NAME]]).toEqual(['"n"', 999])
})
