import { ClickHouseFailure } from '../protocol.ts'
import { quote } from '../quoting.ts'
import { type Cursor, type EngineConnection, loadAddon } from './addon.ts'
import { setThreadNice } from './nice.ts'
import {
  type Ask,
  classify,
  engineFailureOf,
  type Job,
  onPool,
  onThisThread,
  openSession,
  refuseBadStatement,
} from './session.ts'
import { createStitcher, type Stitcher } from './stitch.ts'
import type { ThreadReply, ThreadRequest, ThreadStart } from './threads.ts'

/**
 * A thread that runs one statement at a time, buffered or streamed. The engine plans a streamed query, including its
 * scalar subqueries, on the calling thread, which may take as long as the query. So this is not the thread that serves
 * requests. Threads that the engine starts for a statement inherit this thread's priority.
 */
declare const self: Worker

/** The statement whose result is being streamed. */
interface OpenStream {
  readonly connection: EngineConnection
  readonly cursor: Cursor
  readonly stitcher: Stitcher
  hasEnded: boolean
}

interface Started {
  readonly native: ReturnType<typeof loadAddon>['native']
  readonly connect: ReturnType<typeof loadAddon>['connect']
  readonly ask: Ask
}

let started: Started | undefined
let stream: OpenStream | undefined

self.onmessage = async ({ data }: MessageEvent<ThreadStart | ThreadRequest>) => {
  if (data.kind === 'start') return start(data)
  try {
    reply(await carryOut(data))
  } catch (error) {
    const { code, type, message } = engineFailureOf(error)
    reply({ kind: 'failed', code, type, message })
  }
}

function start({ place, nice }: ThreadStart): void {
  setThreadNice(nice)
  const { native, connect } = loadAddon(place)
  started = { native, connect, ask: onThisThread(native) }
}

async function carryOut(request: ThreadRequest): Promise<ThreadReply> {
  if (started === undefined) throw new Error('the thread has not been started')
  switch (request.kind) {
    case 'run':
      return { kind: 'result', bytes: await run(started, request.job) }
    case 'open':
      return openStream(started, request.job)
    case 'next':
      return next(started)
    case 'close':
      close(started)
      return { kind: 'closed' }
  }
}

async function run({ native, connect, ask }: Started, job: Job): Promise<Uint8Array<ArrayBuffer>> {
  const connection = await openSession(native, connect, job, ask)
  try {
    await refuseBadStatement(native, connection, job.text)
    if (job.data === undefined) return await ask(connection, job.text, job.format)
    return await insertFile(connection, job.text, job.data.file, ask)
  } finally {
    native.CloseConnection(connection)
  }
}

/** Inserts a file like a ClickHouse client with `FROM INFILE`: defaults for missing columns, block by block. */
async function insertFile(
  connection: EngineConnection,
  text: string,
  file: string,
  ask: Ask,
): Promise<Uint8Array<ArrayBuffer>> {
  const [, into, format] = /^(INSERT INTO \S+) FORMAT (\w+)$/.exec(text) ?? []
  if (format === undefined)
    throw new ClickHouseFailure(62, 'SYNTAX_ERROR', 'Syntax error: expected INSERT … FORMAT name.')
  return ask(connection, `${into} FROM INFILE ${quote(file)} COMPRESSION 'none' FORMAT ${format}`, 'Null')
}

async function openStream({ native, connect }: Started, job: Job): Promise<ThreadReply> {
  const stitcher = createStitcher(job.format)
  if (stitcher === undefined) return { kind: 'unstreamable' }
  const connection = await openSession(native, connect, job, onPool(native))
  try {
    const isRead = await classify(native, connection, job.text)
    const cursor = isRead ? native.StreamQuery(connection, job.text, job.format) : undefined
    if (cursor !== undefined) {
      stream = { connection, cursor, stitcher, hasEnded: false }
      return { kind: 'opened' }
    }
  } catch (error) {
    // SHOW, DESCRIBE and similar statements.
    if (!/Streaming query is not supported/.test(engineFailureOf(error).message)) {
      native.CloseConnection(connection)
      throw error
    }
  }
  native.CloseConnection(connection)
  return { kind: 'unstreamable' }
}

/** The next bytes of the stream; blocks without rows are skipped. */
async function next({ native }: Started): Promise<ThreadReply> {
  if (stream === undefined) throw new Error('no stream is open')
  while (!stream.hasEnded) {
    const { done, bytes } = await native.StreamFetch(stream.cursor)
    stream.hasEnded = done
    const piece = done ? stream.stitcher.end() : stream.stitcher.add(bytes)
    // The engine's memory cannot be transferred to another thread, and copying a block is cheap.
    if (piece.length > 0) return { kind: 'piece', bytes: new Uint8Array(piece) }
  }
  return { kind: 'end' }
}

function close({ native }: Started): void {
  if (stream === undefined) return
  const { connection, cursor } = stream
  stream = undefined
  try {
    native.StreamCancel(cursor)
  } finally {
    native.CloseConnection(connection)
  }
}

function reply(message: ThreadReply): void {
  self.postMessage(message, 'bytes' in message ? [message.bytes.buffer] : [])
}
