/** A process that owns a stream and appends to it until it loses it. Tests stop and continue it. */
import { systemClock } from '../../src/base/clock.ts'
import { createLog } from '../../src/base/log.ts'
import { openNatsJournal } from '../../src/stores/journal/nats/journal.ts'
import { appendMarks } from './journals.ts'
import { natsConnection } from './nats.ts'

const [port, stream, subject, key, epoch, generation] = process.argv.slice(2)
const journal = await openNatsJournal({
  nc: await natsConnection([{ port: Number(port) }]),
  stream,
  subject,
  sealKey: Buffer.from(key, 'hex'),
  epochs: [{ epoch, firstSeq: 1 }],
  replicas: 1,
  generation: Number(generation),
  maxBytes: 2 ** 28,
  keepBytes: 2 ** 28,
  streamBytes: 2 ** 28,
  clock: systemClock,
  log: createLog('silent'),
  beginEpoch: async (firstSeq) => ({ epoch, firstSeq }),
  onLost: (reason) => void process.stdout.write(`lost ${reason}\n`, () => process.exit()),
})
for (let mark = 1; ; mark++) {
  const { lastSeq } = await appendMarks(journal, [mark])
  process.stdout.write(`${lastSeq} ${mark}\n`)
}
