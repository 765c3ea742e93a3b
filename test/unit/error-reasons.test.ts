import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { ALL_REASONS, ApiError, REASONS, STATUS_OF } from '../../src/base/errors.ts'

test('the page about the API lists every reason with its code and meaning', async () => {
  const page = await Bun.file(join(import.meta.dir, '..', '..', 'docs', 'api.md')).text()
  const [, section = ''] = page.split('## Error reasons\n')
  const rows = section
    .split('\n## ')[0]!
    .split(/^`(\w+)`:$/m)
    .slice(1)
    .flatMap((text, i, parts) =>
      i % 2 === 0 ? [] : [...text.matchAll(/^- `(\w+)`: (.*)$/gm)].map(([, ...row]) => [parts[i - 1], ...row]),
    )
  const declared = Object.entries(REASONS).flatMap(([code, reasons]) =>
    Object.entries(reasons).map(([reason, meaning]) => [code, reason, meaning]),
  )
  expect(rows).toEqual(declared)
})

test('reasons are snake_case, and no code is one', () => {
  expect(ALL_REASONS.filter((reason) => !/^[a-z]+(_[a-z]+)*$/.test(reason))).toEqual([])
  expect(ALL_REASONS.filter((reason) => reason.toUpperCase() in STATUS_OF)).toEqual([])
})

test('an error keeps its reason where its place or its words change', () => {
  const error = new ApiError('CONFLICT', 'a', { reason: 'in_use', retryAfterSeconds: 3 })
  const { code, reason, retryAfterSeconds, message, param, cause } = error.at('scores[2].run_id', 'b')
  expect({ code, reason, retryAfterSeconds, message, param }).toEqual({
    code: 'CONFLICT',
    reason: 'in_use',
    retryAfterSeconds: 3,
    message: 'scores[2].run_id: b',
    param: 'scores[2].run_id',
  })
  expect(cause).toBe(error)
})
