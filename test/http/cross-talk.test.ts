import { expect, test } from 'bun:test'
import type { Answer } from '../support/api.ts'
import { newReporter, newTenant } from '../support/feeds.ts'
import { startTestService } from '../support/service.ts'

/** No answer to one workspace contains what another has sent, however their calls overlap. */

const CALLS = 200

test('overlapping partial=true calls of two workspaces each list their own rejections', async () => {
  const service = await startTestService()
  const wrong: string[] = []
  const asked = ['Alder', 'Birch'].map(async (mark) => {
    const { api } = await newTenant(service)
    const reporter = await newReporter(api)
    const run_id = await reporter.start()
    const options = { key: reporter.agentKey }
    const call = async (number: number): Promise<void> => {
      const events = [{ type: 'fine' }, ...Array.from({ length: number % 4 }, () => ({ type: 'a', level: mark }))]
      const answer = await api('POST', '/api/ingest/v1/events?partial=true', { run_id, events }, options)
      if (!isOwn(answer, mark, number % 4)) wrong.push(`${mark}: ${answer.status} ${answer.text}`)
    }
    await Promise.all(Array.from({ length: CALLS }, (_, number) => call(number)))
  })
  await Promise.all(asked)
  expect(wrong.slice(0, 3)).toEqual([])
})

function isOwn({ status, data }: Answer, mark: string, count: number): boolean {
  const rejected: { index: number; message: string }[] | undefined = data?.rejected
  return (
    status === 200 &&
    data.accepted === 1 &&
    rejected?.length === count &&
    rejected.every(({ index, message }, n) => index === n + 1 && message.includes(mark))
  )
}
