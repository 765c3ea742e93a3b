import { expect, test } from 'bun:test'
import fs from 'node:fs'
import { join } from 'node:path'
import { createLog } from '../../src/base/log.ts'
import { StoreMarkFile } from '../../src/service/store-marks/mark-file.ts'
import { AcknowledgedFile } from '../../src/stores/journal/local/acknowledged.ts'
import { SinkPositionFile } from '../../src/stores/sink/position.ts'
import { temporaryDirectory } from '../support/teardown.ts'

/** Fails writes after some bytes, as a full or broken disk does. */
class Disk {
  /** Bytes of the next writes that reach the file; undefined for all of them. */
  cutAt: number | undefined
  /** Whether a cut write returns how much it wrote, instead of throwing. */
  isShort = false

  constructor(private readonly path: string) {}

  readonly write = (slot: Buffer, at: number): number => {
    const length = Math.min(this.cutAt ?? slot.length, slot.length)
    const file = fs.openSync(this.path, fs.constants.O_RDWR | fs.constants.O_CREAT)
    fs.writeSync(file, slot, 0, length, at)
    fs.closeSync(file)
    if (this.cutAt !== undefined && !this.isShort) throw new Error('ENOSPC')
    return length
  }
}

interface Opened {
  readonly value: number
  /** Rejects, or leaves `value` as it was, if the write failed. */
  set(value: number): Promise<void>
  close(): Promise<void>
}

interface Kind {
  readonly name: string
  readonly slotBytes: number
  /** Without padding: once these are written, the value may be found. */
  readonly contentBytes: number
  open(dir: string, write: Disk['write']): Promise<Opened>
}

const KINDS: Kind[] = [
  {
    name: 'store-mark',
    slotBytes: 32,
    contentBytes: 28,
    open: async (dir, write) => {
      const file = StoreMarkFile.read(dir, async (slot, at) => write(slot, at))
      return {
        get value() {
          return file.get().beat
        },
        set: (beat) => file.set({ beat, columnarBeat: beat }),
        close: async () => {},
      }
    },
  },
  {
    name: 'acknowledged',
    slotBytes: 32,
    contentBytes: 20,
    open: async (dir, write) => {
      const file = AcknowledgedFile.open(join(dir, 'acknowledged'), createLog('silent'), write)
      return {
        get value() {
          return file.seq
        },
        set: async (seq) => file.set(seq, 1),
        close: () => file.close(),
      }
    },
  },
  {
    name: 'sink.position',
    slotBytes: 64,
    contentBytes: 52,
    open: async (dir, write) => {
      const file = await SinkPositionFile.open(dir, async (slot, at) => write(slot, at))
      return {
        get value() {
          return file.get().loadedSeq
        },
        set: (loadedSeq) => file.set({ loadedSeq }),
        close: () => file.close(),
      }
    },
  },
]

/** Writes by the process before this one, by this one, and how many of them fail then: even and odd numbers of each. */
const HISTORIES = [
  { before: 0, now: 0, failures: 1 },
  { before: 1, now: 0, failures: 1 },
  { before: 2, now: 0, failures: 2 },
  { before: 1, now: 1, failures: 2 },
  { before: 2, now: 1, failures: 3 },
]

for (const { name, slotBytes, contentBytes, open } of KINDS) {
  test.each([false, true])(
    `${name}: a write that fails at any byte, once or repeatedly, loses nothing acknowledged (short write: %p)`,
    async (isShort) => {
      const dir = await temporaryDirectory()
      const path = join(dir, name)
      for (let cutAt = 0; cutAt < slotBytes; cutAt++) {
        for (const history of HISTORIES) {
          const context = { cutAt, ...history }
          fs.rmSync(path, { force: true })
          const disk = new Disk(path)
          let value = 0
          const first = await open(dir, disk.write)
          for (let i = 0; i < history.before; i++) await first.set(++value)
          await first.close()
          const second = await open(dir, disk.write)
          for (let i = 0; i < history.now; i++) await second.set(++value)
          Object.assign(disk, { cutAt, isShort })
          for (let i = 1; i <= history.failures; i++) await second.set(value + i).catch(() => {})
          expect({ ...context, value: second.value }).toEqual({ ...context, value })
          await second.close()
          disk.cutAt = undefined
          const third = await open(dir, disk.write)
          const found = third.value
          const isRight = found === value || (found === value + history.failures && cutAt >= contentBytes)
          expect({ ...context, value, found, isRight }).toMatchObject({ isRight: true })
          await third.set(found + 10)
          expect(third.value).toBe(found + 10)
          await third.close()
        }
      }
    },
    60_000,
  )
}

test('the oldest slot is written first after a start', async () => {
  for (const { name, slotBytes, open } of KINDS) {
    const dir = await temporaryDirectory()
    const disk = new Disk(join(dir, name))
    const offsets: number[] = []
    const write = (slot: Buffer, at: number) => {
      offsets.push(at)
      return disk.write(slot, at)
    }
    for (let value = 1; value <= 5; value++) {
      const file = await open(dir, write)
      await file.set(value)
      await file.close()
    }
    const [first] = offsets
    const other = slotBytes - first!
    expect({ name, offsets }).toEqual({ name, offsets: [first!, other, first!, other, first!] })
  }
})
