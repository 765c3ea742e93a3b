import { expect, test } from 'bun:test'
import { createLog } from '../../src/base/log.ts'
import { Responder } from '../../src/hosted/invoke/respond.ts'

test('a background call whose run has begun is told so, although its state cannot be read', async () => {
  const sql = Object.assign(() => Promise.reject(new Error('the connection was lost')), { unsafe: () => '' })
  const responder = new Responder({ sql, log: createLog('silent') } as never, {} as never)
  const statuses: number[] = []
  const mode = { background: true, key: '', keepOpen: () => {}, setStatus: (status: number) => statuses.push(status) }
  const run = { workspaceId: 'w', runId: 'r', sessionId: null, outcome: null }
  expect(await responder.respond('w', mode, async () => run)).toEqual({
    run_id: 'r',
    session_id: null,
    status: 'queued',
    output: null,
  })
  expect(statuses).toEqual([202])
})
