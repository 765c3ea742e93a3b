import { describe, expect, test } from 'bun:test'
import { linesOf } from '../bench/cpu.ts'
import { readerOf } from '../bench/peers/append/readers.ts'

/** Answers as the peers of the benchmark send them. */
const ANSWERS: readonly (readonly [protocol: string, parts: number, answer: string])[] = [
  ['http', 1, 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nOk.\n'],
  ['http', 1, 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nOk.\r\n0\r\n\r\n'],
  ['redis', 2, '$3\r\n1-0\r\n'],
  ['redis', 8, '+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n$3\r\n1-0\r\n$3\r\n1-1\r\n'],
  ['nats', 2, 'MSG i 1 9\r\n{"seq":1}\r\nMSG i 1 9\r\n{"seq":2}\r\n'],
  ['postgres', 1, 'C\0\0\0\x0bCOPY 1\0Z\0\0\0\x05I'],
]

describe('an answer in pieces of any size is complete at its last byte, not before', () => {
  test.each(ANSWERS)('%s, %i parts: %j', (protocol, parts, answer) => {
    const bytes = Buffer.from(answer, 'latin1')
    for (let size = 1; size <= bytes.length; size++) {
      const reader = readerOf(protocol, parts, () => {})
      // Two answers in turn: nothing of the first is left for the second.
      for (const _ of [1, 2])
        for (let at = 0; at < bytes.length; at += size)
          expect(reader.take(bytes.subarray(at, at + size))).toBe(at + size >= bytes.length)
    }
  })
})

test.each([
  ['http', 'HTTP/1.1 500 Internal Server Error\r\nContent-Length: 14\r\n\r\nToo many parts', 'Too many parts'],
  ['redis', '-OOM command not allowed\r\n', 'OOM'],
  ['nats', 'MSG i 1 40\r\n{"error":{"description":"no space"}}\r\n', 'no space'],
  ['postgres', 'E\0\0\0\x0eMfailed\0\0\0Z\0\0\0\x05I', 'failed'],
])('%s: a refusal says why', (protocol, answer, why) => {
  expect(readerOf(protocol, 1, () => {}).take(Buffer.from(answer, 'latin1'))).toContain(why)
})

test('a ping of NATS is answered, and is not part of an answer', () => {
  const sent: string[] = []
  const reader = readerOf('nats', 1, (text) => sent.push(text))
  expect(reader.take(Buffer.from('PING\r\nMSG i 1 9\r\n'))).toBe(false)
  expect(reader.take(Buffer.from('{"seq":1}\r\n'))).toBe(true)
  expect(sent).toEqual(['PONG\r\n'])
})

test('what the processor time of a call could not be measured of is said', () => {
  const recorded = { machine: 'm', commit: 'c', date: 'd', microseconds: { one: 10 } }
  expect(linesOf(['one', 'two'], new Map([['one', 20]]), recorded)).toEqual([
    expect.stringContaining('recorded at c on d'),
    expect.stringMatching(/^one +20 µs +recorded 10, 2.00 of it$/),
    expect.stringMatching(/^two +not measured: the machine is too busy$/),
  ])
})
