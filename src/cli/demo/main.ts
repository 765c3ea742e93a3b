import { NoResponseError, ServiceError } from '../../client/errors.ts'
import { runMain } from '../shared/main.ts'
import { readArgs } from './args.ts'
import { createDisplay, summary } from './display.ts'
import { runFleet } from './fleet.ts'

/** `bun run demo`: see `args.ts`. */
async function main(): Promise<number> {
  const options = readArgs(Bun.argv.slice(2), process.env)
  const { stdout } = process
  const display = createDisplay({
    isTTY: stdout.isTTY === true,
    columns: stdout.columns ?? 120,
    write: (text) => stdout.write(text),
  })
  const stop = new AbortController()
  const onSignal = () => {
    if (stop.signal.aborted) process.exit(130)
    stop.abort()
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  const { agents, rate, durationSeconds, seed, url } = options
  try {
    const report = await runFleet(options, {
      stop: stop.signal,
      onReady(counters) {
        display.print(
          `${agents} agents report ${rate} runs per second to ${url} for ${durationSeconds} s (seed ${seed}). Ctrl-C ends it early.`,
        )
        display.watch(counters)
      },
      onDrain: () => display.print('Waiting for the runs in progress, then comparing with SQL …'),
    })
    display.stop()
    display.print(`\n${summary(report, url)}`)
    return report.verification.holds ? 0 : 1
  } finally {
    display.stop()
  }
}

await runMain(main, [ServiceError, NoResponseError])
