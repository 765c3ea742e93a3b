import { expect, test } from 'bun:test'
import { mint } from '../../src/base/ids.ts'
import { DetailsReader } from '../../src/feeds/webhooks/delivery/details.ts'
import { freshDatabase } from '../support/postgres.ts'
import { newCaller, storesOn } from '../support/runs.ts'

test('ends of runs do not wait for the counts of another partition', async () => {
  const { sql } = await freshDatabase()
  const caller = await newCaller(sql)
  const { run_id } = await storesOn(sql).runs.start(caller, { agent_id: caller.agentId }, mint)
  const { workspaceId } = caller
  const partition = (counted: Promise<void>) => ({ statistics: { flush: () => counted, lag: () => 0 } })
  const counting = Promise.withResolvers<void>()
  const [behind, current] = [partition(counting.promise), partition(Promise.resolve())]
  const details = new DetailsReader(sql)
  let isRead = false
  const slow = details.read({ owned: behind, workspaceId, runIds: [run_id] }).then(() => {
    isRead = true
  })
  const read = () => details.read({ owned: current, workspaceId, runIds: [run_id] })
  for (const found of [await read(), await read()]) expect([...found.keys()]).toEqual([run_id])
  expect(isRead).toBe(false)
  counting.resolve()
  await slow
})
