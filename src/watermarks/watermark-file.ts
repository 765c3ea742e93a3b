import fs from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'

const SLOT_BYTES = 32
const CHECK_AT = 24
const RESTORED_NAME = 'restored'

/** The mark that is stored beside the journal. */
export interface FileMark {
  readonly beat: number
  /** The newest beat that ClickHouse is known to have stored. */
  readonly columnarBeat: number
}

/**
 * The mark in the journal's directory: if the directory is restored, the mark goes back with it. Two slots are written
 * alternately, so that a torn write leaves the previous one readable.
 */
export class WatermarkFile {
  private constructor(
    private readonly path: string,
    private last: FileMark,
    private generation: number,
  ) {}

  /** Reads the file in the journal's directory. Without a file all values are 0. */
  static read(dir: string): WatermarkFile {
    const path = join(dir, 'watermark')
    const bytes = Buffer.alloc(SLOT_BYTES * 2)
    if (fs.existsSync(path)) fs.readFileSync(path).copy(bytes)
    const slots = [bytes.subarray(0, SLOT_BYTES), bytes.subarray(SLOT_BYTES)].filter(isSound)
    const newest = slots.sort((a, b) => b.readDoubleLE(0) - a.readDoubleLE(0))[0]
    const [generation, beat, columnarBeat] = [0, 8, 16].map((at) => newest?.readDoubleLE(at) ?? 0)
    return new WatermarkFile(path, { beat, columnarBeat }, generation)
  }

  get(): FileMark {
    return this.last
  }

  /** Durable once it resolves. One call at a time. */
  async set(mark: FileMark): Promise<void> {
    const slot = Buffer.alloc(SLOT_BYTES)
    this.generation++
    slot.writeDoubleLE(this.generation, 0)
    slot.writeDoubleLE(mark.beat, 8)
    slot.writeDoubleLE(mark.columnarBeat, 16)
    slot.writeUInt32LE(crc32(slot.subarray(0, CHECK_AT)), CHECK_AT)
    const file = await open(this.path, fs.constants.O_RDWR | fs.constants.O_CREAT, 0o600)
    try {
      await file.write(slot, 0, SLOT_BYTES, (this.generation % 2) * SLOT_BYTES)
      await file.datasync()
    } finally {
      await file.close()
    }
    this.last = mark
  }
}

function isSound(slot: Buffer): boolean {
  return slot.readDoubleLE(0) > 0 && slot.readUInt32LE(CHECK_AT) === crc32(slot.subarray(0, CHECK_AT))
}

/** The directory of the journal, or of its first partition, in the data directory. */
export const JOURNAL_NAME = 'journal'

/** The directory of a partition. The first one is where a service that is a single process has its journal. */
export function journalName(partition: number): string {
  return partition === 0 ? JOURNAL_NAME : `${JOURNAL_NAME}-${partition}`
}

/**
 * The permanent id of a journal in a data directory. It is stored outside the journal's directory, so that the loss of the
 * journal is noticed.
 * @param name the journal's directory
 */
export function readJournalId(dataDir: string, name = JOURNAL_NAME): string {
  const path = join(dataDir, `${name}-id`)
  if (!fs.existsSync(path)) {
    fs.writeFileSync(`${path}.new`, `${crypto.randomUUID()}\n`, { mode: 0o600, flush: true })
    fs.renameSync(`${path}.new`, path)
  }
  return fs.readFileSync(path, 'utf8').trim()
}

/**
 * Marks that all stores of the directory were restored together: they are consistent, and later data is lost. Each journal
 * has a mark of its own, until it has begun a new epoch.
 */
export function markRestored(dataDir: string, name = JOURNAL_NAME): void {
  fs.writeFileSync(restoredPath(dataDir, name), '', { mode: 0o600, flush: true })
}

export function isMarkedRestored(dataDir: string, name = JOURNAL_NAME): boolean {
  return fs.existsSync(restoredPath(dataDir, name))
}

export function unmarkRestored(dataDir: string, name = JOURNAL_NAME): void {
  fs.rmSync(restoredPath(dataDir, name), { force: true })
}

function restoredPath(dataDir: string, name: string): string {
  return join(dataDir, name === JOURNAL_NAME ? RESTORED_NAME : `${name}-${RESTORED_NAME}`)
}
