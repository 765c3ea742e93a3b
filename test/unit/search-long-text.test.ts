import { expect, test } from 'bun:test'
import { termsOfText } from '../../src/activity/runs/search/long-text.ts'
import { parseSearch } from '../../src/activity/runs/search/search-query.ts'

const FILLER = 'lorem ipsum bark dolor \\n sit amet, '.repeat(30_000)
/** What precedes and follows takes about a megabyte. */
const within = (text: string) => `${FILLER}${text} ${FILLER}`

/** The terms found, what is shown, and how long each step took. */
function search(text: string, q: string) {
  const work = termsOfText(text, parseSearch(q).terms)
  const stepsMs: number[] = []
  for (;;) {
    const startMs = performance.now()
    const { done, value } = work.next()
    stepsMs.push(performance.now() - startMs)
    if (done === true) return { found: value.terms.map((term) => term.text), excerpt: value.excerpt, stepsMs }
  }
}

/** The longest step. Other work on the machine only ever prolongs one, so the shortest time of each counts. */
function longestStepMs(text: string, q: string): number {
  const passes = Array.from({ length: 5 }, () => search(text, q).stepsMs)
  return Math.max(...passes[0]!.map((_, step) => Math.min(...passes.map((stepsMs) => stepsMs[step]!))))
}

test('a long text has the same terms as a short one, wherever they are', () => {
  // `String.raw` would change what is beyond ASCII: Bun's transpiler writes it as escapes.
  const text = 'Bark\\nKRAKÓW “Lamp” C:\\\\new {"total":"order-4711"} 返金をお願い archery'
  const places: readonly (readonly [q: string, found: readonly string[]])[] = [
    ['kraków lamp nowhere', ['kraków', 'lamp']],
    ['"kraków lamp"', []],
    ['"kraków  lamp"', ['kraków  lamp']],
    ['C:\\new order-4711 お願い', ['C:\\new', 'order-4711', 'お願い']],
    ['arch rder nkraków', []],
    ['archery', ['archery']],
  ]
  for (const [q, found] of places)
    for (const place of [text, within(text)]) expect([q, search(place, q).found]).toEqual([q, [...found]])
})

test('what is shown of a long text is around the first term, and short', () => {
  const { excerpt } = search(within('Mahogany'), 'mahogany nowhere')
  expect(excerpt).toContain('Mahogany')
  expect(excerpt.length).toBeLessThanOrEqual(16_384)
})

test('no step takes long, whatever the text and the terms', () => {
  const hostile = [
    ['a'.repeat(2_000_000), 'a'],
    ['ab '.repeat(700_000), '"ab abc"'],
    [within(''), Array.from({ length: 16 }, (_, i) => `w${i}`).join(' ')],
    ['\\n'.repeat(1_000_000), `"${'n '.repeat(240)}x"`],
  ] as const
  for (const [text, q] of hostile) expect(longestStepMs(text, q)).toBeLessThan(60)
})
