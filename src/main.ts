import { releaseCodeWhenIdle } from './base/code-pages.ts'
import { isPartitioned } from './base/data-dir.ts'
import { firstError } from './base/errors.ts'
import { createLog, type Log } from './base/log.ts'
import { createProgress, createProgressLine, type Progress, type ProgressLine } from './base/progress.ts'
import { script } from './base/script.ts'
import { StartError } from './base/start-error.ts'
import { CliError, HelpRequest } from './cli/shared/error.ts'
import { parseOptions } from './cli/shared/options.ts'
import { type Config, readConfig } from './service/config/config.ts'
import type { Service } from './service/lifecycle.ts'
import { onLauncherGone } from './service/ops/launcher.ts'
import { startService } from './service/service.ts'
import { welcome } from './service/welcome.ts'

/** Maximum duration of an orderly stop (docs/operations.md#running-it); after it the process exits anyway. */
const STOP_MS = 9_000
/** The width of a terminal that does not report it. */
const COLUMNS = 80

const START = {
  summary: 'Starts the service, with all stores that are not configured to be elsewhere.',
  usage: [script('start')],
  options: {},
  notes: 'Environment variables configure it: see docs/operations.md.',
}

/** Starts the service, prints how to use it, and stops it in an orderly way on a signal. */
async function main(): Promise<void> {
  // The reader of our output may exit at any time: `| head`, a closed terminal, a Ctrl-C that ends `| tee` first.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  const config = configOrExit()
  const { progress, log } = createDisplay(config)
  const stopped = Promise.withResolvers<void>()
  onStopSignal(log, () => progress.clear?.(), stopped.resolve)
  // Background loops are supervised, so an unhandled rejection does not stop them.
  process.on('unhandledRejection', (error) => log.error('unhandled promise rejection', { error }))
  releaseCodeWhenIdle()
  try {
    for (;;) {
      const starting = start(config, { log, progress })
      // An interrupted start has nothing to save, and its child processes end with this one.
      const service = await Promise.race([starting, stopped.promise])
      if (service === undefined) break
      print(welcome(service, config))
      const isOutdated = await Promise.race([stopped.promise.then(() => false), service.outdated.then(() => true)])
      if (isOutdated) log.error('Postgres has been reset to an earlier state; restarting the service')
      await service.stop()
      if (!isOutdated) break
    }
    process.exit(0)
  } catch (error) {
    fail(error)
  }
}

/** A directory that several processes have shared is served by workers from then on, if only by one. */
async function start(config: Config, options: { progress: Progress; log: Log }): Promise<Service> {
  const hasWorkers = config.workers > 1 || isPartitioned(config.dataDir)
  if (!hasWorkers || config.cluster !== undefined) return startService(config, options)
  const { startWorkers } = await import('./service/workers/supervisor.ts')
  return startWorkers(config, options)
}

/**
 * At a terminal: progress on one line that is overwritten, and the log in plain text. Elsewhere: progress in whole lines,
 * and the log in JSON.
 */
function createDisplay({ logLevel }: Config): { progress: Progress & Partial<ProgressLine>; log: Log } {
  const { stdout, stderr } = process
  const progress: Progress & Partial<ProgressLine> =
    stdout.isTTY === true
      ? createProgressLine({ write: print, columns: () => stdout.columns || COLUMNS })
      : createProgress(print)
  const write = (line: string) => {
    progress.clear?.()
    stderr.write(line)
  }
  return { progress, log: createLog(logLevel, write, stderr.isTTY === true ? 'text' : 'json') }
}

/** A misspelt option is refused, because a service that ignored it would not run as meant. */
function configOrExit(): Config {
  try {
    parseOptions(Bun.argv.slice(2), START)
    return readConfig({ isTerminal: process.stderr.isTTY === true })
  } catch (error) {
    return fail(error)
  }
}

/**
 * The first signal, or the end of the npx that started this process, requests an orderly stop. A second signal ends the
 * process, and its children with it, immediately.
 */
function onStopSignal(log: Log, clearProgress: () => void, stop: () => void): void {
  let isStopping = false
  const requestStop = (reason: string) => {
    if (isStopping) return
    isStopping = true
    clearProgress()
    if (process.stdout.isTTY === true) print('Stopping …\n')
    log.info('stopping', { reason })
    setTimeout(() => {
      log.error('shutdown timed out; exiting', { after_ms: STOP_MS })
      process.exit(1)
    }, STOP_MS).unref()
    stop()
  }
  const onSignal = (signal: NodeJS.Signals) => (isStopping ? process.exit(1) : requestStop(signal))
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
  onLauncherGone(() => requestStop('npm has ended'))
}

/** Prints the help if that was asked for, else a line for each problem that the operator can fix, and a stack for any other error. */
function fail(thrown: unknown): never {
  const error = firstError(thrown)
  if (error instanceof HelpRequest) {
    print(error.message)
    process.exit(0)
  }
  const isExpected = error instanceof StartError || error instanceof CliError
  // Some errors of the runtime have no stack.
  const text = isExpected ? error.message : (error instanceof Error && error.stack) || String(error)
  process.stderr.write(`agent-run-service: ${text.replaceAll('\n', '\nagent-run-service: ')}\n`)
  process.exit(error instanceof CliError ? error.exitCode : 1)
}

/** Messages for people go to standard output; the log goes to standard error. */
function print(text: string): void {
  process.stdout.write(text)
}

await main()
