import { expect, test } from 'bun:test'
import { createRunTransitions } from '../../src/activity/runs/transitions.ts'
import { mint } from '../../src/base/ids.ts'
import type { Sql } from '../../src/stores/postgres/connect.ts'
import { freshDatabase } from '../support/postgres.ts'
import { newCaller, storesOn } from '../support/runs.ts'

/** The ends of runs: docs/runs.md#run-states. */

test('a run that starts while its end is being stored ends, too', async () => {
  const { sql } = await freshDatabase()
  const caller = await newCaller(sql)
  const { runs } = storesOn(sql)
  const runId = mint.uuid()
  const start = () => runs.start(caller, { agent_id: caller.agentId, run_id: runId }, mint)

  const { submit } = createRunTransitions(afterFirstStatement(sql, start))
  const ended = await submit({
    runId,
    workspaceId: caller.workspaceId,
    to: 'completed',
    output: null,
    errorMessage: null,
    errorDetail: null,
    usage: null,
    at: Date.now(),
  })

  expect(ended).toMatchObject({ run_id: runId, status: 'completed', already: false })
  expect(await runs.status(caller, runId)).toBe('completed')
})

/** Connections that do `work` once the first statement has its result, before its caller sees it. */
function afterFirstStatement(sql: Sql, work: () => Promise<unknown>): Sql {
  let isFirst = true
  return new Proxy(sql, {
    apply(target, self, args) {
      const query = Reflect.apply(target, self, args)
      const [texts] = args as [readonly string[]]
      // A fragment is part of a statement, and runs with it.
      if (!isFirst || !texts.join('').includes('update runs')) return query
      isFirst = false
      return query.then(async (rows: unknown) => {
        await work()
        return rows
      })
    },
  })
}
