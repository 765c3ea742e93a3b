import { releaseCodeWhenIdle } from '../../base/code-pages.ts'
import { createLog } from '../../base/log.ts'
import { createProgress } from '../../base/progress.ts'
import { StartError } from '../../base/start-error.ts'
import type { Signal } from '../../tenants/partitions/shared/signals.ts'
import { readConfig } from '../config/config.ts'
import type { FromWorker, ToWorker, WorkerStart } from '../pipeline/worker-messages.ts'
import type { WorkerContext } from '../pipeline/workers.ts'
import { startService } from '../service.ts'

/** Maximum duration of an orderly stop. The stores stop after it, within the limit of the whole service. */
const STOP_MS = 5_500

/** Entry point of a worker; `supervisor.ts` is the parent's side. */
async function main(): Promise<void> {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  // The supervisor has ended, so this process ends, too.
  process.on('disconnect', () => process.exit(1))
  // Ctrl-C in a terminal reaches all processes of the service; the supervisor decides when this one ends.
  process.on('SIGINT', () => {})
  const stopped = Promise.withResolvers<void>()
  process.on('SIGTERM', () => stopped.resolve())
  const { start, bus, onStuckQuery } = await receiveStart()
  const given = readConfig({ isTerminal: process.stderr.isTTY === true })
  const config = {
    ...given,
    port: start.port,
    databaseUrl: start.databaseUrl,
    clickhouseUrl: start.clickhouseUrl,
    // The supervisor has created the workspace.
    bootstrapWorkspaceKey: undefined,
  }
  const log = createLog(config.logLevel, undefined, process.stderr.isTTY === true ? 'text' : 'json')
  process.on('unhandledRejection', (error) => log.error('unhandled promise rejection', { error }))
  releaseCodeWhenIdle()
  const worker: WorkerContext = { ...start, bus, onStuckQuery }
  try {
    const starting = startService(config, { log, progress: createProgress(() => {}), worker })
    // An interrupted start has nothing to save.
    const service = await Promise.race([starting, stopped.promise])
    if (service === undefined) process.exit(0)
    sendToParent({ type: 'ready' })
    void service.outdated.then(() => sendToParent({ type: 'outdated' }))
    await stopped.promise
    setTimeout(() => {
      log.error('shutdown timed out; exiting', { after_ms: STOP_MS })
      process.exit(1)
    }, STOP_MS)
    await service.stop()
    process.exit(0)
  } catch (error) {
    if (error instanceof StartError) sendToParent({ type: 'failed', message: error.message })
    else log.error('the worker cannot start', { error })
    process.exit(1)
  }
}

/** Waits for the start message. Later messages go to the listeners. */
async function receiveStart() {
  const started = Promise.withResolvers<WorkerStart>()
  const onSignal: ((signal: Signal) => void)[] = []
  const onStuck: ((workspaceId: string) => void)[] = []
  process.on('message', (message: ToWorker) => {
    if (message.type === 'start') started.resolve(message.start)
    else if (message.type === 'signal') for (const listener of onSignal) listener(message.signal)
    else for (const listener of onStuck) listener(message.workspaceId)
  })
  return {
    start: await started.promise,
    bus: {
      publish(signal: Signal) {
        for (const listener of onSignal) listener(signal)
        sendToParent({ type: 'signal', signal })
      },
      listen: (listener: (signal: Signal) => void) => void onSignal.push(listener),
    },
    onStuckQuery: (listener: (workspaceId: string) => void) => void onStuck.push(listener),
  }
}

function sendToParent(message: FromWorker): void {
  if (process.connected) process.send?.(message)
}

await main()
