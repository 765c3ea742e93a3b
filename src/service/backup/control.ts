import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Log } from '../../base/log.ts'
import { StartError } from '../../base/start-error.ts'
import type { Snapshot } from './snapshot.ts'

/** How a local command reaches the service of a data directory. Read access to the file grants access. */
interface Control {
  readonly url: string
  readonly token: string
}

interface ControlDeps {
  readonly dataDir: string
  /** @throws Error whose message is for the operator */
  readonly takeSnapshot: () => Promise<{ snapshot: Snapshot; release: () => Promise<void> }>
  readonly log: Log
}

const NAME = 'control'
const HEARTBEAT_MS = 1_000

/**
 * A control server for local commands, on loopback and protected by a secret that only the owner of the data directory can
 * read. `POST /backup` responds with a {@link Snapshot}, which is held until the client disconnects.
 *
 * @returns a function that stops it
 */
export function startControl({ dataDir, takeSnapshot, log }: ControlDeps): () => Promise<void> {
  const token = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64url')
  let inProgress: Promise<unknown> | undefined
  let isStopping = false
  let endAll = () => {}
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    development: false,
    idleTimeout: 0,
    fetch: async (request) => {
      if (request.headers.get('authorization') !== `Bearer ${token}`) return new Response(null, { status: 401 })
      if (request.method !== 'POST' || new URL(request.url).pathname !== '/backup')
        return new Response(null, { status: 404 })
      if (inProgress !== undefined) return new Response('another backup is running', { status: 409 })
      const ended = Promise.withResolvers<void>()
      inProgress = ended.promise
      const settle = () => {
        inProgress = undefined
        ended.resolve()
      }
      try {
        const { snapshot, release } = await takeSnapshot()
        log.info('backup: the stores are held at one position', {
          end_seq: snapshot.endSeq,
          held_ms: Math.round(snapshot.heldMs),
        })
        if (isStopping) {
          await release().finally(settle)
          return new Response('it is stopping', { status: 503 })
        }
        const end = () => void release().finally(settle)
        endAll = end
        return new Response(heldStream(snapshot, end))
      } catch (error) {
        settle()
        log.error('backup: the stores could not be held', { error })
        return new Response(error instanceof Error ? error.message : String(error), { status: 500 })
      }
    },
  })
  const path = join(dataDir, NAME)
  writeFileSync(path, JSON.stringify({ url: `http://127.0.0.1:${server.port}`, token } satisfies Control), {
    mode: 0o600,
  })
  chmodSync(path, 0o600)
  return async () => {
    rmSync(path, { force: true })
    isStopping = true
    endAll()
    await inProgress
    await server.stop(true)
  }
}

/** The snapshot on one line, then periodic heartbeats until the client disconnects. */
function heldStream(snapshot: Snapshot, end: () => void): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  let timer: NodeJS.Timeout | undefined
  return new ReadableStream({
    start(controller) {
      controller.enqueue(encoder.encode(`${JSON.stringify(snapshot)}\n`))
      timer = setInterval(() => controller.enqueue(encoder.encode('\n')), HEARTBEAT_MS)
    },
    cancel() {
      clearInterval(timer)
      end()
    },
  })
}

/** A snapshot of the running service, and a function that releases it; undefined when no service responds. */
export async function askForSnapshot(
  dataDir: string,
): Promise<{ snapshot: Snapshot; release: () => Promise<void> } | undefined> {
  const control = readControl(dataDir)
  if (control === undefined) return undefined
  const stop = new AbortController()
  const response = await fetch(`${control.url}/backup`, {
    method: 'POST',
    headers: { authorization: `Bearer ${control.token}` },
    signal: stop.signal,
  }).catch(() => undefined)
  if (response === undefined || response.status === 401 || response.body === null) return undefined
  if (!response.ok) throw new StartError(`the service could not hold its stores: ${await response.text()}`)
  const reader = response.body.getReader()
  const decoder = new TextDecoder()
  let text = ''
  while (!text.includes('\n')) {
    const { done, value } = await reader.read()
    if (done) throw new StartError('the service ended during the backup')
    text += decoder.decode(value, { stream: true })
  }
  // Drains the heartbeats.
  const drained = (async () => {
    while (!(await reader.read()).done);
  })().catch(() => {})
  const release = async () => {
    stop.abort()
    await drained
  }
  return { snapshot: JSON.parse(text.slice(0, text.indexOf('\n'))), release }
}

function readControl(dataDir: string): Control | undefined {
  try {
    return JSON.parse(readFileSync(join(dataDir, NAME), 'utf8'))
  } catch {
    return undefined
  }
}
