import { beforeAll, describe, expect, test } from 'bun:test'
import { pagesOf } from '../support/api.ts'
import { callTurn, type HostedRig, startHostedRig } from '../support/hosted-rig.ts'
import { freshDatabase } from '../support/postgres.ts'

/** Lists of what may be long (docs/api.md#lists): a page ends early, and no page leaves out anything. */

const { url, sql } = await freshDatabase()
let rig: HostedRig
beforeAll(async () => {
  rig = await startHostedRig({ DATABASE_URL: url })
})

const LONG = 'x'.repeat(3 << 20)

/** How many rows each page of a list has; fails unless they are these, in this order. */
async function pageSizes(path: string, id: string, expected: readonly unknown[]): Promise<number[]> {
  const pages = await pagesOf<Record<string, unknown>>((cursor) =>
    rig.service.api('GET', `${path}${path.includes('?') ? '&' : '?'}limit=200${cursor}`),
  )
  expect(pages.flat().map((item) => item[id])).toEqual([...expected])
  return pages.map(({ length }) => length)
}

describe('a page ends with the row that makes it too long', () => {
  test('of agents', async () => {
    const { api } = rig.service
    const made: string[] = []
    for (const metadata of [{}, { a: LONG }, { a: LONG }, { a: LONG }, {}])
      made.unshift((await api('POST', '/api/v1/agents', { name: 'long', metadata })).data.agent_id)
    expect(await pageSizes('/api/v1/agents', 'agent_id', made)).toEqual([3, 2])
  })

  test('of saved queries', async () => {
    const query = `select 1 as n /* ${'x'.repeat(90_000)} */`
    const made: string[] = []
    for (let n = 0; n < 14; n++)
      made.unshift((await rig.service.api('POST', '/api/v1/queries', { name: `${n}`, query })).data.query_id)
    expect(await pageSizes('/api/v1/queries', 'query_id', made)).toEqual([12, 2])
  })

  test('of the messages of a session', async () => {
    const agent = await rig.agent(rig.service, [{ text: 'an answer' }])
    const { session_id } = (await agent.invoke({ start_session: true, input: { message: 'one' } })).data
    await agent.invoke({ session_id, input: { message: 'two' } })
    await sql`update session_messages set content = ${LONG} where role = 'user' and session_id = ${session_id}`
    expect(await pageSizes(`/api/v1/sessions/${session_id}/messages`, 'position', [1, 2, 3, 4])).toEqual([3, 1])
  })

  test('of approvals', async () => {
    const tools = [rig.tools.tool('pay', { requires_approval: true })]
    const agent = await rig.agent(rig.service, [callTurn(['pay', { n: 7 }])], { tools })
    const made: string[] = []
    for (let n = 0; n < 4; n++) made.unshift((await agent.invoke()).data.awaiting_approval.approval_id)
    await sql`update pauses set input = ${{ a: LONG }}::json`
    expect(await pageSizes('/api/v1/approvals?status=pending', 'approval_id', made)).toEqual([2, 2])
  })
})
