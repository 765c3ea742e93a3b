import { expect, test } from 'bun:test'
import { Bytes, putUuid, uuidFromWords } from '../../src/stores/clickhouse/bytes.ts'

test('a String has its length in bytes before it, also where that takes more room than the number of units', () => {
  for (const unit of ['a', 'é', 'aé', '漢', '😀', '\ud800']) {
    for (const count of [0, 1, 42, 43, 60, 63, 64, 127, 128, 5_461, 5_462, 8_192, 16_383, 16_384, 40_000]) {
      const text = unit.repeat(count)
      const bytes = new Bytes(16)
      for (const one of ['x', text, 'y']) bytes.string(one)
      const utf8 = Buffer.from(text)
      expect(
        bytes.view().equals(Buffer.concat([Buffer.from('\x01x'), varint(utf8.length), utf8, Buffer.from('\x01y')])),
      ).toBe(true)
    }
  }
})

test('a UUID is written as its words', () => {
  const uuid = '01234567-89ab-CDEF-8123-456789abcdef'
  const bytes = new Bytes(16)
  bytes.uuid(uuid)
  const words = new Uint32Array(new Uint8Array(bytes.view()).buffer)
  const put = new Uint32Array(5)
  putUuid(uuid, put, 1)
  expect([...put]).toEqual([0, ...words])
  expect(uuidFromWords(words, 0)).toBe(uuid.toLowerCase())
})

function varint(value: number): Buffer {
  const bytes: number[] = []
  for (; value >= 0x80; value >>>= 7) bytes.push((value & 0x7f) | 0x80)
  return Buffer.from([...bytes, value])
}
