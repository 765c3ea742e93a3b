import { type Connection, type Cursor, type EnginePlace, loadAddon } from './addon.ts'
import { failureOf, type Job, openSession } from './session.ts'
import { createStitcher, type Stitcher } from './stitch.ts'
import type { StreamReply, StreamRequest } from './streams.ts'

/**
 * A thread that streams one result at a time. The engine plans a streamed query on the thread that asks for it, scalar
 * subqueries included, which may take as long as the query may: so that is not the thread that answers requests.
 */
declare const self: Worker

interface Open {
  readonly connection: Connection
  readonly cursor: Cursor
  readonly stitcher: Stitcher
  hasEnded: boolean
}

let addon: ReturnType<typeof loadAddon> | undefined
let open: Open | undefined

self.onmessage = async ({ data }: MessageEvent<StreamRequest>) => {
  try {
    reply(await carryOut(data))
  } catch (error) {
    const { code, type, message } = failureOf(error)
    reply({ kind: 'failed', code, type, message })
  }
}

async function carryOut(request: StreamRequest): Promise<StreamReply> {
  switch (request.kind) {
    case 'open':
      return openStream(request.place, request.job)
    case 'next':
      return next()
    case 'close':
      close()
      return { kind: 'closed' }
  }
}

async function openStream(place: EnginePlace, job: Job): Promise<StreamReply> {
  addon ??= loadAddon(place)
  const { native, connect } = addon
  const stitcher = createStitcher(job.format)
  if (stitcher === undefined) return { kind: 'unstreamable' }
  const { connection, isRead } = await openSession(native, connect, job)
  try {
    const cursor = isRead ? native.StreamQuery(connection, job.text, job.format) : undefined
    if (cursor !== undefined) {
      open = { connection, cursor, stitcher, hasEnded: false }
      return { kind: 'opened' }
    }
  } catch (error) {
    // SHOW, DESCRIBE and the like.
    if (!/Streaming query is not supported/.test(failureOf(error).message)) {
      native.CloseConnection(connection)
      throw error
    }
  }
  native.CloseConnection(connection)
  return { kind: 'unstreamable' }
}

/** The next bytes, if there are any; blocks without rows are passed over. */
async function next(): Promise<StreamReply> {
  if (addon === undefined || open === undefined) throw new Error('no stream is open')
  while (!open.hasEnded) {
    const { done, bytes } = await addon.native.StreamFetch(open.cursor)
    open.hasEnded = done
    const piece = done ? open.stitcher.end() : open.stitcher.add(bytes)
    // What the engine allocated cannot change hands, and a copy of a block costs little.
    if (piece.length > 0) return { kind: 'piece', bytes: new Uint8Array(piece) }
  }
  return { kind: 'end' }
}

function close(): void {
  if (addon === undefined || open === undefined) return
  const { connection, cursor } = open
  open = undefined
  addon.native.StreamCancel(cursor)
  addon.native.CloseConnection(connection)
}

function reply(message: StreamReply): void {
  self.postMessage(message, message.kind === 'piece' ? [message.bytes.buffer] : [])
}
