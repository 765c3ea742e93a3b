import fs from 'node:fs'
import { promisify } from 'node:util'
import { type Directory, failure, type Inode, theDisk } from './disk.ts'
import { time } from './virtual-time.ts'

/** What the code under test gets for `node:fs` and `node:fs/promises`: as much of it as it uses, on the disk of the world. */

const { constants } = fs
type Flags = number | string
type Position = number | null

/** A call that the process waits for without yielding. */
function now<Result>(run: (disk: ReturnType<typeof theDisk>) => Result): Result {
  const disk = theDisk()
  disk.faults.before()
  return run(disk)
}

/**
 * A call that goes on while its process waits, in parts. It ends with the machine, and may end or go on when its process dies.
 * @param run gets a function that begins the next part
 */
function later<Result>(
  run: (disk: ReturnType<typeof theDisk>, part: (isSync?: boolean) => Promise<void>) => Promise<Result>,
): Promise<Result> {
  const disk = theDisk()
  const { process } = time
  try {
    disk.faults.before()
  } catch {
    // Its process has ended.
    return new Promise(() => {})
  }
  const { boot } = disk
  const { calls } = disk
  calls.set(process, (calls.get(process) ?? 0) + 1)
  return time.call(async () => {
    try {
      return await whole()
    } finally {
      calls.set(process, calls.get(process)! - 1)
    }
  })

  async function whole(): Promise<Result> {
    const part = async (isSync = false) => {
      await disk.faults.delay(isSync)
      if (disk !== theDisk() || disk.boot !== boot) throw failure('EIO')
      if (process.isDead && disk.faults.chance(0.5)) throw failure('EINTR')
    }
    await part()
    const result = await run(disk, part)
    await disk.faults.delay(false)
    return result
  }
}

function flagsOf(flags: Flags = 'r') {
  const number =
    typeof flags === 'number'
      ? flags
      : { r: 0, 'r+': constants.O_RDWR, w: constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC }[flags]!
  return {
    create: (number & constants.O_CREAT) !== 0,
    truncate: (number & constants.O_TRUNC) !== 0,
    isWritable: (number & (constants.O_WRONLY | constants.O_RDWR)) !== 0,
    isDurable: (number & constants.O_DSYNC) !== 0,
  }
}

function syncDisk(fd: number): Promise<void> {
  return later(async (disk, part) => {
    await part(true)
    disk.sync(disk.openedAt(fd).inode)
  })
}

/** Writes in two parts, between which everything may end. */
function write(fd: number, bytes: Uint8Array, offset: number, length: number, at: number) {
  const whole = Uint8Array.prototype.slice.call(bytes, offset, offset + length)
  return later(async (disk, part) => {
    const half = disk.faults.chance(0.5) ? length : Math.floor((length * 0.6) / disk.sectorBytes) * disk.sectorBytes
    let bytesWritten = half > 0 ? disk.write(fd, whole.subarray(0, half), at) : 0
    if (bytesWritten === half && half < length) {
      await part()
      bytesWritten += disk.write(fd, whole.subarray(half), at + half)
    }
    if (disk.openedAt(fd).isDurable) {
      await part(true)
      disk.sync(disk.fileAt(fd))
    }
    return { bytesWritten, buffer: bytes }
  })
}

function read(fd: number, target: Uint8Array, offset: number, length: number, at: number) {
  return later(async (disk) => ({ bytesRead: disk.read(fd, target, offset, length, at), buffer: target }))
}

async function writeWhole(fd: number, data: string | Uint8Array): Promise<void> {
  const bytes = Buffer.from(data)
  for (let at = 0; at < bytes.length; ) at += (await write(fd, bytes, at, bytes.length - at, at)).bytesWritten
}

export function open(path: string, flags?: Flags) {
  return later(async (disk) => {
    const fd = disk.open(path, flagsOf(flags))
    return {
      fd,
      read: (target: Uint8Array, offset: number, length: number, at: number) => read(fd, target, offset, length, at),
      write: (bytes: Uint8Array, offset: number, length: number, at: number) => write(fd, bytes, offset, length, at),
      writeFile: (data: string | Uint8Array) => writeWhole(fd, data),
      truncate: (bytes: number) => later(async () => disk.truncate(disk.fileAt(fd), bytes)),
      sync: () => syncDisk(fd),
      datasync: () => syncDisk(fd),
      close: () => later(async () => disk.close(fd)),
    }
  })
}

export async function writeFile(path: string, data: string, { flush = false } = {}): Promise<void> {
  const file = await open(path, 'w')
  try {
    await file.writeFile(data)
    if (flush) await file.sync()
  } finally {
    await file.close()
  }
}

export function rename(from: string, to: string): Promise<void> {
  return later(async (disk) => disk.rename(from, to))
}

export function rm(path: string, { force = false } = {}): Promise<void> {
  return later(async (disk) => {
    if (!force || disk.exists(path)) disk.remove(path)
  })
}

const statOf = (inode: Inode | Directory) => ({ size: (inode as Inode).bytes.length })

export default {
  constants,
  openSync: (path: string, flags?: Flags) => now((disk) => disk.open(path, flagsOf(flags))),
  closeSync: (fd: number) => now((disk) => disk.close(fd)),
  readSync: (fd: number, target: Uint8Array, offset: number, length: number, at: number) =>
    now((disk) => disk.read(fd, target, offset, length, at)),
  writeSync: (fd: number, bytes: Uint8Array, offset: number, length: number, at: Position) =>
    now((disk) => disk.write(fd, bytes.subarray(offset, offset + length), at ?? 0)),
  writeFileSync(to: number | string, data: string | Uint8Array): void {
    if (typeof to === 'string') {
      const fd = this.openSync(to, 'w')
      this.writeFileSync(fd, data)
      this.closeSync(fd)
      return
    }
    const bytes = Buffer.from(data)
    for (let at = 0; at < bytes.length; ) at += this.writeSync(to, bytes, at, bytes.length - at, at)
  },
  readFileSync(path: string, encoding?: BufferEncoding): string | Buffer {
    const bytes = now((disk) => Buffer.from((disk.find(path) as Inode).bytes))
    return encoding === undefined ? bytes : bytes.toString(encoding)
  },
  fsyncSync: (fd: number) => now((disk) => disk.sync(disk.openedAt(fd).inode)),
  renameSync: (from: string, to: string) => now((disk) => disk.rename(from, to)),
  existsSync: (path: string) => now((disk) => disk.exists(path)),
  mkdirSync: (path: string) => now((disk) => (disk.exists(path) ? undefined : disk.makeDir(path))),
  readdirSync: (path: string) => now((disk) => [...(disk.find(path) as Directory).entries.keys()]),
  statSync: (path: string, { throwIfNoEntry = true } = {}) =>
    now((disk) => (throwIfNoEntry || disk.exists(path) ? statOf(disk.find(path)) : undefined)),
  fstatSync: (fd: number) => now((disk) => statOf(disk.fileAt(fd))),
  rmSync: (path: string, { force = false } = {}) =>
    now((disk) => (!force || disk.exists(path) ? disk.remove(path) : undefined)),
  watch(path: string, listen: () => void) {
    const inode = theDisk().find(path) as Inode
    const heard = time.heardBy(listen)
    inode.watchers.add(heard)
    return { on() {}, close: () => void inode.watchers.delete(heard) }
  },
  write: Object.assign(() => {}, { [promisify.custom]: write }),
  fdatasync: Object.assign(() => {}, { [promisify.custom]: syncDisk }),
}
