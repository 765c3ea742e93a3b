import { expect, spyOn, test } from 'bun:test'
import { BatchScan } from '../../src/doors/langfuse/batch-scan.ts'

test('a body with many lists of events clears only what each has used, and pauses between them', () => {
  const lists = 60_000
  const body = `{${`"batch":[${'1,'.repeat(99)}1],`.repeat(2)}${'"batch":[],'.repeat(lists)}"batch":[{"id":"last"}]}`
  const cleared = spyOn(Int32Array.prototype, 'fill')
  try {
    const scan = new BatchScan(Buffer.from(body))
    let pauses = 0
    for (const _ of scan.read(100)) pauses++
    expect(scan.count).toBe(1)
    expect(scan.text.toString('utf8', scan.start(scan.id(0)), scan.end(scan.id(0)))).toBe('"last"')
    expect(pauses).toBeGreaterThan(lists)
    const numbers = cleared.mock.calls.reduce((sum, [, from, to]) => sum + ((to ?? Number.NaN) - (from ?? 0)), 0)
    expect(numbers).toBeLessThan(100_000)
  } finally {
    cleared.mockRestore()
  }
})
