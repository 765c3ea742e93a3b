import { expect, test } from 'bun:test'
import { DryRuns } from '../../src/sql/alerts/dry-run.ts'

test('a dry run waits for a commit that takes longer than ticks take to settle', async () => {
  const held = Promise.withResolvers<() => void>()
  const steps: string[] = []
  const waitForAll = async () => {
    steps.push('loads')
    return false
  }
  const journal = { hold: () => held.promise }
  const dryRuns = new DryRuns({
    store: { check: async () => {}, queryOf: async () => ({ query: 'select 1', params: null }) },
    partitions: { of: () => ({ owned: { journal }, loading: { waitForAll } }) },
    clock: { now: Date.now },
    secondMs: 1_000,
  } as never)
  const [from, to] = [new Date(Date.now() - 120_000).toISOString(), new Date(Date.now() - 60_000).toISOString()]
  const definition = {
    name: 'a',
    query: 'select 1',
    every: '1m',
    condition: 'any_row',
    notify: [],
    from,
    to,
  }
  const outcome = dryRuns
    .ofDefinition({} as never, definition as never, AbortSignal.timeout(60_000))
    .catch((error) => error)
  await Bun.sleep(20)
  steps.push('committed')
  held.resolve(() => steps.push('released'))
  expect(await outcome).toMatchObject({ code: 'UNAVAILABLE', reason: 'not_loaded' })
  expect(steps).toEqual(['committed', 'released', 'loads'])
})
