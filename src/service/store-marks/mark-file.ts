import fs from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { SlotFile, type WriteSlot } from '../../base/slot-file.ts'

const LAYOUT = { slotBytes: 32, numbers: 3 }
const RESTORED_NAME = 'restored'

/** The mark that is stored beside the journal. */
interface FileMark {
  readonly beat: number
  /** The newest beat that ClickHouse is known to have stored. */
  readonly columnarBeat: number
}

/** The mark in the journal's directory: if the directory is restored, the mark goes back with it. */
export class StoreMarkFile {
  private constructor(
    private readonly slots: SlotFile,
    private readonly write: WriteSlot<Promise<number>>,
  ) {}

  /** Reads the file in the journal's directory. Without a file all values are 0. */
  static read(dir: string, write = durably(join(dir, 'store-mark'))): StoreMarkFile {
    const path = join(dir, 'store-mark')
    return new StoreMarkFile(SlotFile.of(fs.existsSync(path) ? fs.readFileSync(path) : Buffer.alloc(0), LAYOUT), write)
  }

  get(): FileMark {
    const [, beat = 0, columnarBeat = 0] = this.slots.numbers
    return { beat, columnarBeat }
  }

  /** Durable once it resolves. One call at a time. */
  async set({ beat, columnarBeat }: FileMark): Promise<void> {
    const [generation = 0] = this.slots.numbers
    await this.slots.set([generation + 1, beat, columnarBeat], this.write)
  }
}

/** Opens the file for each write: they are seconds apart. */
function durably(path: string): WriteSlot<Promise<number>> {
  return async (slot, at) => {
    const file = await open(path, fs.constants.O_RDWR | fs.constants.O_CREAT, 0o600)
    try {
      const { bytesWritten } = await file.write(slot, 0, slot.length, at)
      await file.datasync()
      return bytesWritten
    } finally {
      await file.close()
    }
  }
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
