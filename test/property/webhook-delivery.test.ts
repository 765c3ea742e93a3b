import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { type Step, World, type WorldOptions } from './webhook-world.ts'

/** Deliveries whatever goes wrong: docs/webhooks.md#deliveries. */

const common = ['read', 'answer', 'answer', 'answer', 'store', 'store', 'tick', 'load', 'save'] as const
const rare = ['crash', 'move', 'recover'] as const
const step: fc.Arbitrary<Step> = fc.record({
  do: fc.oneof(
    { weight: 30, arbitrary: fc.constantFrom(...common) },
    { weight: 1, arbitrary: fc.constantFrom(...rare) },
  ),
  pick: fc.nat(10_000),
})
const options: fc.Arbitrary<Omit<WorldOptions, 'isStrict'>> = fc.record({
  rowsMax: fc.constantFrom(3, 20, 1_000),
  items: fc.integer({ min: 1, max: 120 }),
  runs: fc.integer({ min: 1, max: 12 }),
  refusedEvery: fc.constantFrom(5, 13, 1_000),
  answers: fc.array(fc.constantFrom('ok', 'ok', 'ok', 'error', 'late', 'overload'), { minLength: 1, maxLength: 20 }),
})
const RUNS = Number(process.env.WEBHOOK_RUNS ?? 60)

async function delivered(given: Omit<WorldOptions, 'isStrict'>, isStrict: boolean, steps: readonly Step[]) {
  const world = new World({ ...given, isStrict })
  for (const each of steps) await world.step(each)
  await world.drain()
  expect([...new Set([...world.taken, ...world.givenUp])].toSorted((a, b) => a - b)).toEqual(world.wanted)
  const firsts = [...new Set(world.taken)].filter((seq) => !world.givenUp.has(seq))
  return { world, firsts }
}

const isAscending = (seqs: readonly number[]) => seqs.every((seq, i) => i === 0 || seq > seqs[i - 1])

test('every activity is delivered at least once, or given up if its row is refused, and those of a run in order', async () => {
  const property = fc.asyncProperty(options, fc.array(step, { maxLength: 400, size: 'max' }), async (given, steps) => {
    const { world, firsts } = await delivered(given, false, steps)
    const byRun = Map.groupBy(firsts, (seq) => world.runOf(seq))
    byRun.delete('run 0')
    for (const seqs of byRun.values()) expect(isAscending(seqs)).toBe(true)
  })
  await fc.assert(property, { numRuns: RUNS, interruptAfterTimeLimit: 50_000 })
}, 60_000)

test('in strict order all are delivered in order', async () => {
  const property = fc.asyncProperty(options, fc.array(step, { maxLength: 400, size: 'max' }), async (given, steps) => {
    const { firsts } = await delivered(given, true, steps)
    expect(isAscending(firsts)).toBe(true)
  })
  await fc.assert(property, { numRuns: RUNS, interruptAfterTimeLimit: 50_000 })
}, 60_000)
