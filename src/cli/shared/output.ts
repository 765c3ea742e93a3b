import { createWriteStream } from 'node:fs'
import { CliError } from './error.ts'

/** The reader has closed the pipe: `bun run sql … | head`. */
export class ReaderGone extends Error {}

/** Where a command writes its results: a file or, without a path, standard output. */
export class Output {
  /** Bytes written so far. */
  bytes = 0
  private stream: NodeJS.WritableStream | undefined

  constructor(private readonly path?: string) {}

  /**
   * The first write creates the file, so that a command that fails does not overwrite an earlier result.
   *
   * @returns a promise that resolves when there is room for more, so that results of any size take little memory
   * @throws ReaderGone; CliError when it cannot be written
   */
  write(chunk: string | Uint8Array): Promise<void> {
    const { path } = this
    this.stream ??= (path === undefined ? process.stdout : createWriteStream(path)).on('error', () => {})
    this.bytes += Buffer.byteLength(chunk)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.stream.write(chunk, (error?: NodeJS.ErrnoException | null) => {
      if (error == null) resolve()
      else if (error.code === 'EPIPE') reject(new ReaderGone())
      else reject(new CliError(`cannot write to ${path ?? 'standard output'}: ${error.message}`, 1, { cause: error }))
    })
    return promise
  }

  /** Resolves when the file is complete. */
  async end(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    if (this.path === undefined || this.stream === undefined) return
    this.stream.end(resolve)
    await promise
  }
}
