import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { headers } from '@nats-io/transport-node'
import type { NatsRig } from './journals.ts'

/** A message of a stream. */
export interface StoredMessage {
  readonly data: Uint8Array
  /** The journal's header. */
  readonly head: string
}

/** All messages of a stream, in order. */
export async function storedMessages(rig: NatsRig): Promise<StoredMessage[]> {
  const jsm = await jetstreamManager(rig.nc)
  const { first_seq, last_seq } = (await jsm.streams.info(rig.stream)).state
  return Promise.all(
    Array.from({ length: last_seq - first_seq + 1 }, async (_, index) => {
      const message = await jsm.direct.getMessage(rig.stream, { seq: first_seq + index })
      if (message === null) throw new Error(`message ${first_seq + index} is missing`)
      return { data: message.data, head: message.header.get('Journal') }
    }),
  )
}

/** Replaces a stream by one with other messages. Returns these. */
export async function replaceStream(
  rig: NatsRig,
  change: (stored: StoredMessage[]) => StoredMessage[],
): Promise<StoredMessage[]> {
  const stored = change(await storedMessages(rig))
  const jsm = await jetstreamManager(rig.nc)
  const { config } = await jsm.streams.info(rig.stream)
  await jsm.streams.delete(rig.stream)
  await jsm.streams.add(config)
  for (const { data, head } of stored) {
    const copied = headers()
    if (head !== '') copied.set('Journal', head)
    await jetstream(rig.nc).publish(rig.subject, data, { headers: copied })
  }
  return stored
}
