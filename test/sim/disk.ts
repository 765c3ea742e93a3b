import type { SimulatedProcess } from './virtual-time.ts'

/** Unit of space. */
const PAGE_BYTES = 4096

/** What goes wrong at a disk, and how long it takes. */
export interface DiskFaults {
  /** Called before each call of the system. @throws Error when the process, or the machine, ends at this moment */
  before(): void
  /** How long a part of a call takes. */
  delay(isSync: boolean): Promise<void>
  chance(probability: number): boolean
  /** Whether a call fails with EIO. */
  fails(kind: 'write fails' | 'sync fails'): boolean
}

/** A file. What its processes see, and what is on the disk. */
export class Inode {
  bytes: Buffer = Buffer.alloc(0)
  private stored: Buffer = Buffer.alloc(0)
  /** Numbers of the sectors that the disk may have, or not. */
  private unsynced = new Set<number>()
  private isResized = false
  readonly watchers = new Set<() => void>()

  constructor(private readonly disk: Disk) {}

  write(bytes: Uint8Array, at: number): void {
    const end = at + bytes.length
    if (end > this.bytes.length) this.resize(end)
    this.bytes.set(bytes, at)
    const { sectorBytes } = this.disk
    for (let sector = Math.floor(at / sectorBytes); sector * sectorBytes < end; sector++) this.unsynced.add(sector)
    for (const heard of this.watchers) heard()
  }

  resize(bytes: number): void {
    const resized = Buffer.alloc(bytes)
    this.bytes.copy(resized)
    this.bytes = resized
    this.isResized = true
  }

  /** Everything is on the disk. */
  sync(): void {
    this.stored = Buffer.from(this.bytes)
    this.unsynced.clear()
    this.isResized = false
  }

  /** A sync failed: the disk has some of it, and the system believes that it has all, so that the next sync does nothing. */
  syncPartly(): void {
    this.powerOff(true)
  }

  /** Of what is not synced the disk has any part. */
  powerOff(isRunning = false): void {
    const { sectorBytes, faults } = this.disk
    const isResized = this.isResized && faults.chance(0.5)
    const stored = Buffer.alloc(isResized ? this.bytes.length : this.stored.length)
    this.stored.copy(stored)
    for (const sector of this.unsynced) {
      const at = sector * sectorBytes
      if (at < stored.length && faults.chance(0.5)) this.bytes.copy(stored, at, at, at + sectorBytes)
    }
    this.stored = stored
    this.unsynced.clear()
    if (isRunning) return
    this.isResized = false
    this.bytes = Buffer.from(stored)
  }
}

/** The entries of a directory: as processes see them, and on the disk. */
export class Directory {
  entries = new Map<string, Inode | Directory>()
  private stored = new Map<string, Inode | Directory>()
  /** In order. Each is one step for the disk. */
  private unsynced: (readonly (readonly [string, Inode | Directory | undefined])[])[] = []

  constructor(private readonly disk: Disk) {}

  change(...entries: readonly (readonly [string, Inode | Directory | undefined])[]): void {
    apply(this.entries, entries)
    this.unsynced.push(entries)
  }

  sync(): void {
    this.stored = new Map(this.entries)
    this.unsynced = []
  }

  powerOff(): void {
    const { faults, isOrdered } = this.disk
    for (const change of this.unsynced) {
      if (faults.chance(0.5)) apply(this.stored, change)
      else if (isOrdered) break
    }
    this.unsynced = []
    this.entries = new Map(this.stored)
    for (const entry of this.entries.values()) entry.powerOff()
  }

  /** Of its files, in pages. */
  get pages(): number {
    let pages = 0
    for (const entry of this.entries.values())
      pages += entry instanceof Directory ? entry.pages : Math.ceil(entry.bytes.length / PAGE_BYTES)
    return pages
  }
}

function apply(
  to: Map<string, Inode | Directory>,
  entries: readonly (readonly [string, Inode | Directory | undefined])[],
): void {
  for (const [name, entry] of entries) {
    if (entry === undefined) to.delete(name)
    else to.set(name, entry)
  }
}

/** An open file. */
interface Opened {
  readonly inode: Inode | Directory
  readonly isDurable: boolean
  readonly isWritable: boolean
}

/**
 * A file system in memory. It knows of every sector and every entry whether it is synced; when the power fails, only what
 * is synced is sure to be there afterwards.
 */
export class Disk {
  private readonly root = new Directory(this)
  private readonly opened = new Map<number, Opened>()
  private fds = 100
  /** Grows with each power failure. */
  boot = 0
  isReadOnly = false
  /** The calls of each process that have not ended. */
  readonly calls = new Map<SimulatedProcess, number>()
  /** How many more pages fit while the disk is full. */
  pagesLeft = Number.POSITIVE_INFINITY

  /**
   * @param sectorBytes what the disk writes as a whole
   * @param isOrdered whether it writes the changes of a directory in order, as file systems with a log of their own do
   */
  constructor(
    readonly faults: DiskFaults,
    readonly sectorBytes: number,
    readonly isOrdered: boolean,
  ) {}

  powerOff(): void {
    this.boot++
    this.opened.clear()
    this.root.powerOff()
  }

  /** @throws Error ENOENT */
  find(path: string): Inode | Directory {
    let found: Inode | Directory | undefined = this.root
    for (const name of path.split('/').filter(Boolean))
      found = found instanceof Directory ? found.entries.get(name) : undefined
    if (found === undefined) throw failure('ENOENT', path)
    return found
  }

  /** The directory of `path`, and the name in it. */
  place(path: string): [Directory, string] {
    const cut = path.lastIndexOf('/')
    return [this.find(path.slice(0, cut)) as Directory, path.slice(cut + 1)]
  }

  exists(path: string): boolean {
    try {
      return this.find(path) !== undefined
    } catch {
      return false
    }
  }

  makeDir(path: string): void {
    const [parent, name] = this.place(path)
    this.change()
    parent.change([name, new Directory(this)])
  }

  open(path: string, flags: { create: boolean; truncate: boolean; isWritable: boolean; isDurable: boolean }): number {
    if (flags.isWritable) this.change()
    if (flags.create && !this.exists(path)) {
      const [dir, name] = this.place(path)
      dir.change([name, new Inode(this)])
    }
    const inode = this.find(path)
    if (flags.truncate && inode instanceof Inode && inode.bytes.length > 0) this.truncate(inode, 0)
    this.opened.set(++this.fds, { inode, isDurable: flags.isDurable, isWritable: flags.isWritable })
    return this.fds
  }

  close(fd: number): void {
    if (!this.opened.delete(fd)) throw failure('EBADF')
  }

  /** @throws Error EBADF */
  openedAt(fd: number): Opened {
    const found = this.opened.get(fd)
    if (found === undefined) throw failure('EBADF')
    return found
  }

  fileAt(fd: number): Inode {
    return this.openedAt(fd).inode as Inode
  }

  read(fd: number, target: Uint8Array, offset: number, length: number, at: number): number {
    const found = this.fileAt(fd).bytes.subarray(at, at + length)
    target.set(found, offset)
    return found.length
  }

  /** @returns how many bytes were written: fewer than given when there is no room for all. @throws Error ENOSPC, EROFS, EIO */
  write(fd: number, bytes: Uint8Array, at: number): number {
    const { isWritable } = this.openedAt(fd)
    if (!isWritable) throw failure('EBADF')
    this.change()
    const inode = this.fileAt(fd)
    const { length } = inode.bytes
    const room = (Math.ceil(length / PAGE_BYTES) + this.pagesLeft) * PAGE_BYTES
    const fitting = bytes.subarray(0, Math.max(0, room - at))
    if (fitting.length === 0 && bytes.length > 0) throw failure('ENOSPC')
    const part = this.faults.fails('write fails') ? fitting.subarray(0, fitting.length >> 1) : fitting
    if (part.length > 0) {
      inode.write(part, at)
      this.take(length, inode.bytes.length)
    }
    if (part.length < fitting.length) throw failure('EIO')
    return part.length
  }

  truncate(inode: Inode, bytes: number): void {
    this.change()
    this.take(inode.bytes.length, bytes)
    inode.resize(bytes)
  }

  sync(inode: Inode | Directory): void {
    if (this.faults.fails('sync fails')) {
      if (inode instanceof Inode) inode.syncPartly()
      throw failure('EIO')
    }
    inode.sync()
  }

  remove(path: string): void {
    this.change()
    const inode = this.find(path) as Inode
    this.take(inode.bytes.length, 0)
    const [dir, name] = this.place(path)
    dir.change([name, undefined])
  }

  rename(from: string, to: string): void {
    this.change()
    const [dir, name] = this.place(from)
    dir.change([name, undefined], [this.place(to)[1], this.find(from)])
  }

  /** @throws Error EROFS */
  private change(): void {
    if (this.isReadOnly) throw failure('EROFS')
  }

  private take(before: number, after: number): void {
    this.pagesLeft -= Math.ceil(after / PAGE_BYTES) - Math.ceil(before / PAGE_BYTES)
  }
}

export function failure(code: string, path = ''): Error {
  return Object.assign(new Error(`${code} ${path}`), { code })
}

/** The disk of this world. */
let current: Disk | undefined

export function useDisk(disk: Disk): void {
  current = disk
}

export function theDisk(): Disk {
  if (current === undefined) throw new Error('no disk in this world')
  return current
}
