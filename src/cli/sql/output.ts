import { createWriteStream } from 'node:fs'
import { CliError } from '../shared/error.ts'

/** The destination of results. */
export interface Output {
  /** Resolves when there is room for more, so that results of any size take little memory. */
  write(chunk: string | Uint8Array): Promise<void>
  /** Resolves when everything has been written. */
  end(): Promise<void>
}

/** `write` throws ReaderGone when the reader has closed the pipe: `bun run sql … | head`. */
export function toStream(stream: NodeJS.WriteStream): Output {
  stream.on('error', () => {})
  return {
    write: (chunk) => written(stream, chunk, 'standard output'),
    end: () => Promise.resolve(),
  }
}

interface FileOutput extends Output {
  readonly path: string
  /** Bytes written so far. */
  readonly bytes: number
}

/** The first write creates the file, so that a query that fails does not overwrite an earlier result. */
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

/** The reader has closed the pipe. */
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
