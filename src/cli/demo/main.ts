import { createProgress, createProgressLine } from '../../base/progress.ts'
import { StartError } from '../../base/start-error.ts'
import { NoResponseError, ServiceError } from '../../client/errors.ts'
import { onLauncherGone } from '../../service/ops/launcher.ts'
import { runMain } from '../shared/main.ts'
import { type DemoOptions, readArgs } from './args.ts'
import { print, summary, watch } from './display.ts'
import { runFleet } from './fleet.ts'
import { HistoryClock, writeHistory } from './history.ts'
import { type ModelServer, startModelServer } from './hosted/model-server.ts'
import { startOwnService } from './own-service.ts'
import { createRandom } from './random.ts'

const DAY_MS = 86_400_000
/** The width of a terminal that does not report it. */
const COLUMNS = 80

/** `bun run demo`: see `args.ts`. */
async function main(): Promise<number> {
  const options = readArgs(Bun.argv.slice(2), process.env)
  const stop = new AbortController()
  const onSignal = () => {
    if (stop.signal.aborted) process.exit(130)
    stop.abort()
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  onLauncherGone(() => stop.abort())
  const clock = new HistoryClock(Date.now() - options.historyDays * DAY_MS)
  if (!options.isServing) clock.release()
  const random = createRandom(options.seed)
  const model = startModelServer({ port: options.modelPort, random, pass: (ms) => clock.pass(ms) })
  try {
    if (!options.isServing) return await report(options, model, stop.signal)
    return await serve(options, { model, clock, stop: stop.signal })
  } finally {
    await model.stop()
  }
}

interface ServeParts {
  readonly model: ModelServer
  readonly clock: HistoryClock
  readonly stop: AbortSignal
}

/** Starts a service, fills it with history, and reports to it. */
async function serve(options: DemoOptions, { model, clock, stop }: ServeParts): Promise<number> {
  const { stdout } = process
  const write = (text: string) => stdout.write(text)
  const columns = () => stdout.columns || COLUMNS
  const progress = stdout.isTTY === true ? createProgressLine({ write, columns }) : createProgress(write)
  const service = await startOwnService({ env: process.env, clock, model, progress })
  const { url, key } = service
  try {
    return await report({ ...options, url, key }, model, stop, async (company, client) => {
      const { historyDays: days, seed } = options
      await progress.during(`Writing ${days} days of history`, () =>
        writeHistory(company, client, { days, seed, clock, stop }),
      )
      clock.release()
      print(`\nOpen ${url}/ and paste this key:\n\n  ${key}\n`)
    })
  } finally {
    print('Stopping the service and deleting its data …')
    await service.stop()
  }
}

type OnCompany = NonNullable<Parameters<typeof runFleet>[2]['onCompany']>

async function report(
  options: DemoOptions,
  model: ModelServer,
  stop: AbortSignal,
  onCompany?: OnCompany,
): Promise<number> {
  const { rate, seed, url, durationSeconds, isServing } = options
  let stopWatching = () => {}
  try {
    const report = await runFleet(options, model, {
      stop,
      ...(onCompany !== undefined && { onCompany }),
      onReady(progress) {
        const time = isServing ? 'until Ctrl-C' : `for ${durationSeconds} s; Ctrl-C ends it early`
        print(`Conversations and jobs start at ${url}, ${rate} per second, ${time} (seed ${seed}).`)
        if (!progress.isHosting)
          print(
            `Hosted agents are left out: the service has another model server, or none. To include them, start it with\nOPENAI_BASE_URL=${model.modelUrl} EGRESS_ALLOW=${model.host}, or see --help for --serve.`,
          )
        stopWatching = watch(progress)
      },
      onDrain: () => print('Waiting for the runs in progress, then comparing with SQL …'),
    })
    stopWatching()
    print(`\n${summary(report, isServing ? undefined : url)}`)
    return report.differences.length === 0 ? 0 : 1
  } finally {
    stopWatching()
  }
}

await runMain(main, [ServiceError, NoResponseError, StartError])
