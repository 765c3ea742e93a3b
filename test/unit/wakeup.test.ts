import { expect, test } from 'bun:test'
import { sleep, withTimeout } from '../../src/base/abort.ts'
import { Wakeup } from '../../src/base/wakeup.ts'

test('a wait ends when it is woken, after its time, or when its signal aborts', async () => {
  const wakeup = new Wakeup()
  const stopping = new AbortController()
  const woken = wakeup.next(60_000, stopping.signal)
  wakeup.wake()
  expect(await woken).toBe(true)
  expect(await wakeup.next(1)).toBe(false)
  const stopped = wakeup.next(undefined, stopping.signal)
  stopping.abort()
  expect(await stopped).toBe(false)
  expect(await wakeup.next(60_000, stopping.signal)).toBe(false)
})

test('waking a busy loop ends its next wait at once, and only that one', async () => {
  const wakeup = new Wakeup()
  wakeup.wake()
  wakeup.wake()
  expect(await wakeup.next(60_000)).toBe(true)
  expect(await wakeup.next(1)).toBe(false)
  wakeup.wake()
  wakeup.clear()
  expect(await wakeup.next(1)).toBe(false)
})

test('sleep ends when its signal aborts', async () => {
  const stopping = new AbortController()
  const asleep = sleep(60_000, stopping.signal)
  stopping.abort()
  await asleep
  await sleep(60_000, stopping.signal)
})

test('a time limit ends the waiting, not the work; its later failure is ignored', async () => {
  const work = Promise.withResolvers<never>()
  expect(withTimeout(work.promise, 5)).rejects.toThrow('no answer for 5 ms')
  await sleep(20)
  work.reject(new Error('too late'))
  await sleep(1)
  expect(await withTimeout(Promise.resolve(7), 60_000)).toBe(7)
})
