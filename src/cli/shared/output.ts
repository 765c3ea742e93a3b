import { close, open, write } from 'node:fs'
import { promisify } from 'node:util'
import { CliError } from './error.ts'

const STANDARD_OUTPUT = 1
/** How long to wait for the reader of a pipe that is full and does not block. */
const FULL_PIPE_MS = 5

/** The reader has closed the pipe: `bun run sql … | head`. */
export class ReaderGone extends Error {}

/**
 * Where a command writes its results: a file or, without a path, standard output. Writes to the descriptor: the callbacks of
 * `process.stdout` are called in Bun before a pipe has taken the bytes, which a command that then exits loses.
 */
export class Output {
  /** Bytes given to `write` so far. */
  bytes = 0
  /** Bytes of these that a slow reader has not taken. */
  waiting = 0
  /** Creates the file at the first write, so that a command that fails does not overwrite an earlier result. */
  private file: Promise<number> | undefined
  private last = Promise.resolve()

  constructor(private readonly path?: string) {}

  /**
   * @returns a promise that resolves when it is written, so that results of any size take little memory
   * @throws ReaderGone; CliError when it cannot be written
   */
  write(chunk: string | Uint8Array): Promise<void> {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
    this.bytes += bytes.length
    this.waiting += bytes.length
    this.last = this.last.then(() => this.writeAll(bytes))
    return this.last
  }

  /** Resolves when everything is written, or cannot be. */
  settled(): Promise<void> {
    return this.last.catch(() => {})
  }

  /** Resolves when the file is complete. */
  async end(): Promise<void> {
    const { path, file } = this
    if (path !== undefined && file !== undefined) await promisify(close)(await file).catch((error) => this.fail(error))
  }

  private async writeAll(bytes: Uint8Array): Promise<void> {
    const { path } = this
    try {
      this.file ??= path === undefined ? Promise.resolve(STANDARD_OUTPUT) : promisify(open)(path, 'w', 0o666)
      const file = await this.file
      for (let at = 0; at < bytes.length; ) at += await writeSome(file, bytes, at)
      this.waiting -= bytes.length
    } catch (error) {
      this.fail(error as NodeJS.ErrnoException)
    }
  }

  private fail(cause: NodeJS.ErrnoException): never {
    if (cause.code === 'EPIPE') throw new ReaderGone()
    throw new CliError(`cannot write to ${this.path ?? 'standard output'}: ${cause.message}`, 1, { cause })
  }
}

/** @returns how many bytes were written, which may be none */
async function writeSome(file: number, bytes: Uint8Array, at: number): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  write(file, bytes, at, bytes.length - at, null, (error, written) => {
    if (error === null) resolve(written)
    else if (error.code === 'EAGAIN') setTimeout(resolve, FULL_PIPE_MS, 0)
    else reject(error)
  })
  return promise
}
