import { NoResponseError, ServiceError } from '../../client/errors.ts'
import { runMain } from '../shared/main.ts'
import { HELP, readArgs } from './args.ts'
import { print, summary, watch } from './display.ts'
import { runFleet } from './fleet.ts'

/** `bun run demo`: see {@link HELP}. */
async function main(): Promise<number> {
  const options = readArgs(Bun.argv.slice(2), process.env)
  if (options === 'help') {
    process.stdout.write(HELP)
    return 0
  }
  const stop = new AbortController()
  const onSignal = () => {
    if (stop.signal.aborted) process.exit(130)
    stop.abort()
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  const { agents, rate, durationSeconds, seed, url } = options
  let stopWatching = () => {}
  try {
    const report = await runFleet(options, {
      stop: stop.signal,
      onReady(progress) {
        print(
          `${agents} agents report ${rate} runs per second to ${url} for ${durationSeconds} s (seed ${seed}). Ctrl-C ends it early.`,
        )
        stopWatching = watch(progress)
      },
      onDrain: () => print('Waiting for the runs in progress, then comparing with SQL …'),
    })
    stopWatching()
    print(`\n${summary(report, url)}`)
    return report.differences.length === 0 ? 0 : 1
  } finally {
    stopWatching()
  }
}

await runMain(main, [ServiceError, NoResponseError])
