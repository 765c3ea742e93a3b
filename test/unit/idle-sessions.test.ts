import { expect, test } from 'bun:test'
import type { EngineConnection } from '../../src/stores/clickhouse/engine/addon.ts'
import { IdleSessions } from '../../src/stores/clickhouse/engine/idle-sessions.ts'
import type { Job } from '../../src/stores/clickhouse/engine/session.ts'

/** Which statements of the embedded engine may share a session. */

const READ = { readonly: '1', max_execution_time: '10', additional_table_filters: 'of a workspace' }

test('a read gets the session of an earlier one with the same settings and database', async () => {
  const { sessions, ask, closed } = rig()
  expect(await ask({ queryId: 'a' })).toBe(1)
  expect(await ask({ queryId: 'b', settings: Object.fromEntries(Object.entries(READ).reverse()) })).toBe(1)
  expect(await ask({ settings: { ...READ, additional_table_filters: 'of another' } })).toBe(2)
  expect(await ask({ database: 'other' })).toBe(3)
  expect(await ask({ queryId: 'c' })).toBe(1)
  expect(closed).toEqual([])
  expect(sessions.toKill('c')).toBe("= 'c'")
})

test('a session never runs two statements at once', async () => {
  const { sessions } = rig()
  const { promise, resolve } = Promise.withResolvers<void>()
  const at = (queryId: string) =>
    sessions.during(job({ queryId }), (connection) => promise.then(() => numberOf(connection)))
  const both = [at('a'), at('b')]
  resolve()
  expect(await Promise.all(both)).toEqual([1, 2])
})

test('no session is kept that its statement could change, that has parameters, or whose statement failed', async () => {
  const { ask, closed, sessions } = rig()
  await ask({ settings: {} })
  await ask({ settings: { ...READ, readonly: '2' } })
  await ask({ parameters: { x: '1' } })
  await sessions.during(job({}), () => Promise.reject(new Error('failed'))).catch(() => {})
  expect(closed).toEqual([1, 2, 3, 4])
  expect(await ask({})).toBe(5)
})

test('a statement is killed by the id of its session, which is then closed', async () => {
  const { ask, closed, sessions, ids } = rig()
  await ask({ queryId: 'first' })
  // A late KILL of the first does not find the second.
  expect(ids[0]).not.toBe('first')
  const killed = sessions.during(job({ queryId: 'second' }), async (connection) => {
    expect(sessions.toKill('second')).toBe(`IN ('second', '${ids[0]}')`)
    return numberOf(connection)
  })
  expect(await killed).toBe(1)
  expect(closed).toEqual([1])
  expect(await ask({ queryId: 'third' })).toBe(2)
})

test('a second statement with the id of a running one has a session of its own, killed by the same id', async () => {
  const { sessions, closed, ids } = rig()
  await sessions.during(job({ queryId: 'a' }), async () => {
    await sessions.during(job({ queryId: 'a' }), async () => {})
    expect(closed).toEqual([2])
    expect(sessions.toKill('a')).toBe(`IN ('a', '${ids[0]}')`)
  })
})

test('two statements with one id that begin at the same moment are killed together', async () => {
  const { sessions, ids } = rig()
  const { promise, resolve } = Promise.withResolvers<void>()
  const both = [1, 2].map(() => sessions.during(job({ queryId: 'a' }), () => promise))
  const [own, plain] = ids
  expect(plain).toBe('a')
  expect(sessions.toKill('a')).toBe(`IN ('a', '${own}')`)
  resolve()
  await Promise.all(both)
})

test('a session that does not open leaves nothing behind', async () => {
  let fails = true
  const closed: EngineConnection[] = []
  const sessions = new IdleSessions(
    async () => (fails ? Promise.reject(new Error('no session')) : (1 as unknown as EngineConnection)),
    (connection) => closed.push(connection),
  )
  const failed = sessions.during(job({}), async () => 1)
  expect(sessions.toKill('q')).toStartWith("IN ('q'")
  expect(await failed.catch(({ message }) => message)).toBe('no session')
  expect(sessions.toKill('q')).toBe("= 'q'")
  fails = false
  expect(await sessions.during(job({}), async () => 1)).toBe(1)
  expect(closed).toEqual([])
})

test('only a few sessions are kept, those used last', async () => {
  const { ask, closed } = rig()
  for (let i = 0; i < 17; i++) await ask({ database: `d${i}` })
  expect(closed).toEqual([1])
  expect(await ask({ database: 'd1' })).toBe(2)
  await ask({ database: 'd0' })
  expect(closed).toEqual([1, 3])
})

/** Sessions with a number each, in the order in which they are opened. */
function rig() {
  let opened = 0
  const closed: number[] = []
  /** By which their statements are killed. */
  const ids: string[] = []
  const sessions = new IdleSessions(
    async ({ queryId }) => {
      ids.push(queryId)
      return ++opened as unknown as EngineConnection
    },
    (connection) => closed.push(numberOf(connection)),
  )
  const ask = (part: Partial<Job>) => sessions.during(job(part), async (connection) => numberOf(connection))
  return { sessions, closed, ids, ask }
}

function numberOf(connection: EngineConnection): number {
  return connection as unknown as number
}

function job(part: Partial<Job>): Job {
  const plain = { lane: 'tenant', text: 'SELECT 1', database: 'd', queryId: 'q', format: 'JSON' } as const
  return { ...plain, settings: READ, parameters: {}, ...part }
}
