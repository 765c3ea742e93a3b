import { join } from 'node:path'

/** Requests that a separate process sends repeatedly. */
export interface Load {
  readonly port: number
  readonly connections: number
  readonly seconds: number
  /** Ends the load earlier, after so many answers. */
  readonly calls?: number
  /** Each connection takes the next request of the list, cyclically. */
  readonly requests: readonly WireRequest[]
  /**
   * Sent after each of `requests`, with its key: the run id of the previous response replaces the id
   * in the body.
   */
  readonly followUp?: { readonly path: string; readonly body: string }
  /** Sends OpenTelemetry exports with new ids, made where they are sent, to the path of the first request. */
  readonly otlp?: 'traces' | 'logs'
  /** The beginning of ids in the bodies, hexadecimal digits that each request replaces by random ones. */
  readonly freshIds?: string
}

export interface WireRequest {
  readonly path: string
  readonly key: string
  readonly body: string
}

export interface LoadResult {
  readonly calls: number
  /** Responses other than 2xx; not included in `calls`. */
  readonly failures: number
  readonly firstFailure: string | null
  readonly callsPerSecond: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
  readonly max: number
}

/** Sends the load and returns the result. Throws if the server cannot be reached. */
export function runLoad(load: Load): Promise<LoadResult> {
  return runScript('load-generator.ts', load) as Promise<LoadResult>
}

/** Runs a script of this directory that takes a task and prints a result, both as JSON. */
export async function runScript(name: string, task: object): Promise<unknown> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, name)], {
    stdin: new TextEncoder().encode(JSON.stringify(task)),
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const [text, code] = await Promise.all([new Response(child.stdout).text(), child.exited])
  if (code !== 0) throw new Error(`${name} ended with ${code}`)
  return JSON.parse(text)
}
