import { Client } from '../../client/index.ts'
import { createNote, runMain } from '../shared/main.ts'
import { Output, ReaderGone } from '../shared/output.ts'
import { readArgs, type TailOptions } from './args.ts'
import { follow, type Received } from './follow.ts'
import { createFormat } from './format.ts'
import { createAgentNames } from './names.ts'
import { findStart } from './since.ts'

/** Bytes that wait for a slow reader; beyond this, activity is left with the service. */
const WAITING_MAX = 4 * 2 ** 20

/** `bun run tail`: see `args.ts`. */
async function main(): Promise<void> {
  const options = readArgs(Bun.argv.slice(2), process.env)
  const stop = new AbortController()
  const over = Promise.withResolvers<void>()
  const end = () => {
    stop.abort()
    over.resolve()
  }
  process.on('SIGINT', end)
  process.on('SIGTERM', end)
  const output = new Output()
  const print = (text: string) => {
    output.write(text).catch((error) => (error instanceof ReaderGone ? end() : over.reject(error)))
  }
  const full = () => (output.waiting > WAITING_MAX ? output.settled() : null)
  try {
    await Promise.race([watch(options, { print, full }, stop.signal), over.promise])
  } catch (error) {
    await Promise.race([output.settled(), over.promise])
    throw error
  }
}

interface Lines {
  print(text: string): void
  /** See {@link follow}. */
  full(): Promise<void> | null
}

async function watch(options: TailOptions, { print, full }: Lines, signal: AbortSignal): Promise<void> {
  const { url, key, filter, maxPerSecond, json, noColor } = options
  // No retries here: the follower retries.
  const client = new Client({ url, key, maxRetries: 0 })
  const names = createAgentNames(client, key)
  const { stdout, stderr } = process
  const format = createFormat({
    color: stdout.isTTY === true && !noColor,
    // A terminal of unknown width reports 0.
    width: () => (stdout.isTTY === true && stdout.columns) || Number.POSITIVE_INFINITY,
    agentName: names.of,
  })
  const line = json ? ({ json }: Received) => json : format
  const write = createNote(noColor)
  const note = (text: string) => write(text, 'dim')
  if (stderr.isTTY === true) note(`watching ${url}; Ctrl-C ends it`)
  let notBefore = ''
  await follow({
    url,
    key,
    client,
    signal,
    note,
    wanted: { filter, max_per_second: maxPerSecond },
    async start() {
      if (!json) await names.load()
      const start = await findStart(options.since, client, key)
      notBefore = start.notBefore ?? ''
      return start.after
    },
    take(items, skipped) {
      if (skipped > 0) note(`${skipped} more skipped (limit of ${maxPerSecond} per second)`)
      const wanted = items.filter(({ activity }) => activity.received_at >= notBefore)
      if (wanted.length > 0) print(wanted.map((item) => `${line(item)}\n`).join(''))
    },
    full,
  })
}

await runMain(main)
