import { join } from 'node:path'

/** Requests that are sent over and over, by a process of their own. */
export interface Load {
  readonly port: number
  readonly connections: number
  readonly seconds: number
  /** Each connection takes the next request of the list, again and again. */
  readonly requests: readonly WireRequest[]
  /**
   * Sent after each of `requests`, under its key: the run id of the answer before is put in the place of the id that
   * stands in the body.
   */
  readonly followUp?: { readonly path: string; readonly body: string }
}

export interface WireRequest {
  readonly path: string
  readonly key: string
  readonly body: string
}

export interface LoadResult {
  readonly calls: number
  /** Answers that were not 2xx; they are not among `calls`. */
  readonly failures: number
  readonly firstFailure: string | null
  readonly callsPerSecond: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
  readonly max: number
}

/** Sends the load and waits for what came of it. Throws when the server could not be reached. */
export function runLoad(load: Load): Promise<LoadResult> {
  return runScript('load-generator.ts', load) as Promise<LoadResult>
}

/** Runs a script of this directory that takes a task and prints what came of it, both as JSON. */
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
