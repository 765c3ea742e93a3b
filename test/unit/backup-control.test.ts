import { expect, test } from 'bun:test'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { createLog } from '../../src/base/log.ts'
import { askForSnapshot, startControl } from '../../src/service/backup/control.ts'
import type { Snapshot } from '../../src/service/backup/snapshot.ts'
import { eventually } from '../support/eventually.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'

/** A control server whose snapshots take until `open` is called. */
async function control() {
  const dataDir = await temporaryDirectory()
  const counts = { begun: 0, released: 0 }
  const { promise: opened, resolve: open, reject: refuse } = Promise.withResolvers<void>()
  const takeSnapshot = async () => {
    counts.begun++
    await opened
    const release = async () => {
      counts.released++
    }
    return { snapshot: { endSeq: 7, heldMs: 1 } as Snapshot, release }
  }
  const stop = startControl({ dataDir, takeSnapshot, log: createLog('silent') })
  return { dataDir, counts, open, refuse, stop }
}

/** Asks for a snapshot as the backup command does, and leaves before there is an answer. */
async function askAndLeave(dataDir: string, hasBegun: () => boolean): Promise<void> {
  const { url, token } = JSON.parse(await readFile(join(dataDir, 'control'), 'utf8'))
  const { port, host } = new URL(url)
  const socket = connect(Number(port), '127.0.0.1')
  socket.write(`POST /backup HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${token}\r\ncontent-length: 0\r\n\r\n`)
  await eventually(hasBegun)
  socket.destroy()
  await once(socket, 'close')
}

/** Bun cancels the stream of an answer to a request whose client has gone. */
test('a snapshot is released when its client has left before the answer, and the next backup begins', async () => {
  const { dataDir, counts, open, stop } = await control()
  atEnd(stop)
  await askAndLeave(dataDir, () => counts.begun === 1)
  open()
  await eventually(() => counts.released === 1)
  const held = await askForSnapshot(dataDir)
  expect(held?.snapshot.endSeq).toBe(7)
  expect(counts).toEqual({ begun: 2, released: 1 })
  await held!.release()
  await eventually(() => counts.released === 2)
  // Once, although both the connection and the answer have ended.
  const again = await askForSnapshot(dataDir)
  await again!.release()
  await eventually(() => counts.released === 3)
})

test.each(['is there', 'fails'] as const)('a stop waits until a snapshot that was begun before %s', async (outcome) => {
  const { dataDir, counts, open, refuse, stop } = await control()
  const asked = askForSnapshot(dataDir).catch(() => undefined)
  await eventually(() => counts.begun === 1)
  const stopped = stop()
  if (outcome === 'fails') refuse(new Error('the service stops'))
  else open()
  await stopped
  await asked
  expect(counts.released).toBe(outcome === 'fails' ? 0 : 1)
})
