import { expect, test } from 'bun:test'
import { DeliveryList } from '../../src/feeds/webhooks/delivery-list.ts'
import type { StoredWebhook } from '../../src/feeds/webhooks/schema.ts'
import type { Caller } from '../../src/tenants/keys/schema.ts'

/** Pages of the list of deliveries (docs/webhooks.md#list-of-deliveries), from a fake of ClickHouse. */

interface Attempt {
  readonly delivery_id: string
  readonly activity_seq: number
  readonly position: number
}

/** @param attempts the latest first */
function listOf(attempts: readonly Attempt[]) {
  const asked: number[] = []
  const query = async (sql: string, { params }: { params: Record<string, never> }) => {
    if (!sql.includes('max(seq)')) {
      const { before, limit } = params
      const found = attempts.filter(({ position }) => position < before).slice(0, limit)
      asked.push(found.length)
      return found.map((attempt) => ({ ...attempt, at_ms: 0 }))
    }
    const { first, seqs } = params as unknown as { first: number; seqs: number[] }
    const later = attempts.filter(({ position, activity_seq }) => position >= first && seqs.includes(activity_seq))
    return Map.groupBy(later, ({ delivery_id }) => delivery_id)
      .values()
      .map(([{ position }]) => ({ latest: position }))
      .toArray()
  }
  const list = new DeliveryList({
    sql: (async () => []) as never,
    columnar: { query } as never,
    partitions: { of: () => ({ loading: { waitForAll: async () => true } }) } as never,
  })
  const page = (more: object) => list.list({} as Caller, {} as StoredWebhook, more)
  return { page, asked }
}

const attempt = (position: number, activity_seq: number) => ({
  delivery_id: `d${activity_seq}`,
  activity_seq,
  position,
})

test('a page reads no more attempts than it needs', async () => {
  const { page, asked } = listOf(Array.from({ length: 10_000 }, (_, index) => attempt(10_000 - index, index)))
  const { items, next_cursor } = await page({ limit: 50 })
  expect([items.length, asked, next_cursor !== null]).toEqual([50, [200], true])
})

test('pages have each delivery once, at its latest attempt, even if thousands of attempts are of one', async () => {
  // Every other attempt is of the delivery 0, whose latest is the first of all.
  const { page } = listOf(Array.from({ length: 6_000 }, (_, index) => attempt(6_000 - index, index % 2 && index)))
  const { page: ofOne } = listOf(Array.from({ length: 6_000 }, (_, index) => attempt(6_000 - index, 0)))
  for (const [pageOf, count] of [
    [page, 3_001],
    [ofOne, 1],
  ] as const) {
    const found: string[] = []
    let cursor: string | null | undefined
    do {
      const { items, next_cursor } = await pageOf({ limit: 100, ...(cursor && { cursor }) })
      found.push(...items.map(({ delivery_id }) => delivery_id))
      cursor = next_cursor
    } while (cursor !== null)
    expect([found.length, new Set(found).size, found[0]]).toEqual([count, count, 'd0'])
  }
})
