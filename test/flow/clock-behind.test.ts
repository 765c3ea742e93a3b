import { expect, test } from 'bun:test'
import { eventually } from '../support/eventually.ts'
import { newReporter } from '../support/feeds.ts'
import { startTestService } from '../support/service.ts'

const DAY_MS = 86_400_000

test('what is reported while the clock is weeks behind, as at the start of a machine, does not expire when it is right again', async () => {
  let aheadMs = 0
  const service = await startTestService({}, { clock: { now: () => Date.now() + aheadMs } })
  const { api } = service
  const agent = await newReporter(api)
  const runId = await agent.start()
  await agent.events(runId, [{ type: 'before' }])
  aheadMs = -40 * DAY_MS
  await agent.events(runId, [{ type: 'behind' }])
  aheadMs = 0
  await agent.events(runId, [{ type: 'after' }])
  const query = 'select type, dateDiff(day, received_at, now()) < 2 as stays from events order by seq'
  await eventually(async () => {
    const { data } = await api('POST', '/api/v1/query', { query })
    expect(data.rows.map(({ type, stays }: { type: string; stays: number }) => [type, stays])).toEqual([
      ['before', 1],
      ['behind', 1],
      ['after', 1],
    ])
  })
  await service.stop()
})
