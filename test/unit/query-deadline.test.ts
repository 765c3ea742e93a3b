import { expect, test } from 'bun:test'
import { QueryDeadline } from '../../src/stores/clickhouse/engine/query-deadline.ts'
import { ClickHouseFailure } from '../../src/stores/clickhouse/protocol.ts'
import { eventually } from '../support/eventually.ts'

/** When the embedded engine kills a statement's query, and when it reports it as stuck. */

const NEVER_STUCK = { busyMs: 60_000, latestMs: 60_000 }
const AT_ONCE_STUCK = { busyMs: 0, latestMs: 0 }
const GONE = new ClickHouseFailure(394, 'QUERY_WAS_CANCELLED', 'gone')

test('a query cancelled before a KILL can find it is killed while its stream closes', async () => {
  const opened = Promise.withResolvers<void>()
  const closed = Promise.withResolvers<void>()
  let isOpen = false
  const kill = async () => {
    if (isOpen) closed.resolve()
    else opened.resolve()
  }
  const deadline = new QueryDeadline(kill, NEVER_STUCK, () => {})
  // The first KILL arrives before the query has started, and finds nothing.
  const opening = deadline.during(() => opened.promise)
  deadline.cancel(GONE)
  expect(await opening.catch((error) => error)).toBe(GONE)
  isOpen = true
  await deadline.close({ isOver: false, close: () => closed.promise })
})

test('a stream closes only after the running step', async () => {
  const order: string[] = []
  const step = Promise.withResolvers<void>()
  const deadline = new QueryDeadline(
    async () => {},
    NEVER_STUCK,
    () => {},
  )
  const stepping = deadline.during(() => step.promise).then(() => order.push('step'))
  const closing = deadline.close({ isOver: false, close: async () => void order.push('close') })
  step.resolve()
  await Promise.all([stepping, closing])
  expect(order).toEqual(['step', 'close'])
})

test('a query that no KILL ends is reported as stuck while its stream closes', async () => {
  const closed = Promise.withResolvers<void>()
  let isStuck = false
  const deadline = new QueryDeadline(
    async () => {},
    AT_ONCE_STUCK,
    () => {
      isStuck = true
    },
  )
  const closing = deadline.close({ isOver: false, close: () => closed.promise })
  await eventually(() => isStuck)
  closed.resolve()
  await closing
})

test('the stream of a query that has ended may take long to close, without a KILL', async () => {
  const kills: string[] = []
  const closed = Promise.withResolvers<void>()
  const deadline = new QueryDeadline(
    async () => void kills.push('kill'),
    AT_ONCE_STUCK,
    () => kills.push('stuck'),
  )
  const closing = deadline.close({ isOver: true, close: () => closed.promise })
  // A stream whose query has not ended is killed within this time.
  const other = Promise.withResolvers<void>()
  const another = new QueryDeadline(
    async () => other.resolve(),
    NEVER_STUCK,
    () => {},
  )
  await another.close({ isOver: false, close: () => other.promise })
  closed.resolve()
  await closing
  expect(kills).toEqual([])
})
