import { expect, test } from 'bun:test'
import { outcomeOf } from '../../src/hosted/tools/mcp-outcome.ts'

const asIs = (text: string) => text
const imageOf = (data: string) => ({ content: [{ type: 'image' as const, mimeType: 'image/png', data }] })

test('an image is named with its size, without its padding', () => {
  expect(outcomeOf(imageOf('YWJjZA=='), asIs)).toEqual({ ok: true, output: '[image, image/png, 4 bytes, left out]' })
  expect(outcomeOf(imageOf('==='), asIs)).toMatchObject({ output: '[image, image/png, 0 bytes, left out]' })
})

test('a server that sends padding for data does not hold the event loop', () => {
  const started = performance.now()
  const { ok } = outcomeOf(imageOf(`${'='.repeat(500_000)}x`), asIs)
  expect(ok).toBe(true)
  expect(performance.now() - started).toBeLessThan(3_000)
})
