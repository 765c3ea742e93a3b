import { createWriteStream } from 'node:fs'
import { CliError } from '../cli/error.ts'

/** Where answers go. */
export interface Output {
  /** Resolves once there is room for more, so that an answer of any size takes little memory. */
  write(chunk: string | Uint8Array): Promise<void>
  /** Resolves when all of it is out. */
  end(): Promise<void>
}

/** @throws ReaderGone from `write`, when nobody reads any more: `bun run sql … | head` */
export function toStream(stream: NodeJS.WriteStream): Output {
  stream.on('error', () => {})
  return {
    write: (chunk) => written(stream, chunk, 'standard output'),
    end: () => Promise.resolve(),
  }
}

/** A file that answers are written into. */
export interface FileOutput extends Output {
  readonly path: string
  /** How many are written so far. */
  readonly bytes: number
}

/** The file is made with the first thing written, so that a query that fails leaves an earlier answer alone. */
export function toFile(path: string): FileOutput {
  let file: ReturnType<typeof createWriteStream> | undefined
  let bytes = 0
  return {
    path,
    get bytes() {
      return bytes
    },
    write(chunk) {
      bytes += Buffer.byteLength(chunk)
      if (file === undefined) {
        file = createWriteStream(path)
        file.on('error', () => {})
      }
      return written(file, chunk, path)
    },
    end: () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      if (file === undefined) resolve()
      else file.end(resolve)
      return promise
    },
  }
}

/** Whoever read the answer has seen enough. */
export class ReaderGone extends Error {}

function written(stream: NodeJS.WritableStream, chunk: string | Uint8Array, name: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  stream.write(chunk, (error?: NodeJS.ErrnoException | null) => {
    if (error == null) resolve()
    else if (error.code === 'EPIPE') reject(new ReaderGone())
    else reject(new CliError(`cannot write to ${name}: ${error.message}`, 1, { cause: error }))
  })
  return promise
}
