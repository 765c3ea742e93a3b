import { createHmac, randomBytes } from 'node:crypto'
import fs from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { StartError } from '../../../base/start-error.ts'
import { type Epoch, epochAt, newEpoch, withEpoch } from '../journal.ts'
import { FrameSeal } from '../log/frame.ts'
import { replaceFile } from './files.ts'

interface Stored {
  /** Hexadecimal; see {@link FrameSeal}. Secret. */
  readonly key: string
  /** In order; the last one is the current epoch. */
  readonly epochs: readonly Epoch[]
}

const KEY_BYTES = 32
const NAME = 'epoch'

/**
 * The identity of the log in this directory: its epochs, and the key that seals its frames. It is stored twice, because
 * without the key genuine frames cannot be told from forged ones.
 */
export class Identity {
  private constructor(
    private readonly dir: string,
    private stored: Stored,
  ) {}

  /**
   * @param hasSegments whether the directory has frames already
   * @throws StartError when it has frames and neither copy can be read
   */
  static open(dir: string, hasSegments: boolean): Identity {
    const copies = readCopies(dir)
    const found = copies.find((stored) => stored !== undefined)
    if (found === undefined && hasSegments) {
      throw new StartError(
        `${join(dir, NAME)} cannot be read, and neither can its copy: restore it from a backup; without it the journal cannot be read`,
      )
    }
    const identity = new Identity(dir, found ?? { key: newKey(), epochs: [{ epoch: newEpoch(), firstSeq: 1 }] })
    if (copies.some((stored) => stored !== found) || found === undefined) identity.save()
    return identity
  }

  /** The identity of a log that another process writes; undefined when it cannot be read. Must not be changed. */
  static read(dir: string): Identity | undefined {
    const found = readCopies(dir).find((stored) => stored !== undefined)
    return found && new Identity(dir, found)
  }

  get epoch(): string {
    return this.stored.epochs[this.stored.epochs.length - 1].epoch
  }

  get epochs(): readonly Epoch[] {
    return this.stored.epochs
  }

  /** The seal for the frames of the segment that begins at `firstSeq`. */
  sealOf(firstSeq: number): FrameSeal {
    return new FrameSeal(Buffer.from(this.stored.key, 'hex'), epochAt(this.epochs, firstSeq), firstSeq)
  }

  /** Signs `text` with a key that is derived from the log's, for this purpose only. Hexadecimal. */
  signatureOf(purpose: string, text: string): string {
    const key = createHmac('sha256', Buffer.from(this.stored.key, 'hex')).update(purpose).digest()
    return createHmac('sha256', key).update(text).digest('hex')
  }

  /** Begins a new epoch; durable when it returns. Rows of earlier epochs keep theirs. */
  begin(firstSeq: number): void {
    this.stored = { ...this.stored, epochs: withEpoch(this.stored.epochs, { epoch: newEpoch(), firstSeq }) }
    this.save()
  }

  private save(): void {
    const text = JSON.stringify(this.stored)
    const whole = `${text}\n${crc32(text)}\n`
    for (const name of [NAME, `${NAME}.copy`]) replaceFile(join(this.dir, name), whole)
  }
}

function readCopies(dir: string): (Stored | undefined)[] {
  return [NAME, `${NAME}.copy`].map((name) => readStored(join(dir, name)))
}

function newKey(): string {
  return randomBytes(KEY_BYTES).toString('hex')
}

/** Undefined when the file is missing or damaged. */
function readStored(path: string): Stored | undefined {
  if (!fs.existsSync(path)) return undefined
  const [text, check] = fs.readFileSync(path, 'utf8').split('\n')
  return check !== undefined && Number(check) === crc32(text) ? JSON.parse(text) : undefined
}
