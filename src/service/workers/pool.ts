import { join } from 'node:path'
import type { Log } from '../../base/log.ts'
import { StartError } from '../../base/start-error.ts'
import type { FromWorker, ToWorker, WorkerStart } from '../pipeline/worker-messages.ts'

/** The part of the start message that is the same for all workers. */
type CommonStart = Omit<WorkerStart, 'index' | 'instanceId' | 'previousInstanceId'>

interface WorkerPoolDeps {
  /** Registers a worker that is about to start, instead of the one that it replaces. */
  readonly register: (instanceId: string, previousInstanceId: string) => Promise<void>
  /** Called when Postgres has gone back to an earlier state. */
  readonly onOutdated: () => void
  readonly log: Log
}

type Child = ReturnType<typeof Bun.spawn>

const RESTART_DELAY_MIN_MS = 50
const RESTART_DELAY_MAX_MS = 5_000
/** A worker that takes longer to stop is killed. Its own limit is shorter. */
const STOP_MS = 6_000

/** The worker processes. One that ends is started again. All of them end with this process, however it ends. */
export class WorkerPool {
  private readonly children: (Child | undefined)[] = []
  private readonly keeping: Promise<void>[] = []
  private isStopping = false

  constructor(private readonly deps: WorkerPoolDeps) {}

  /**
   * Starts all workers.
   * @param instanceIds one for each worker
   * @throws StartError when one of them cannot start
   */
  async start(common: CommonStart, instanceIds: readonly string[]): Promise<void> {
    await Promise.all(
      instanceIds.map((instanceId, index) => {
        const ready = Promise.withResolvers<void>()
        this.keeping.push(this.keep(index, instanceId, common, ready))
        return ready.promise
      }),
    )
  }

  /** Sends a message to all workers but `except`. */
  broadcast(message: ToWorker, except?: number): void {
    for (const [index, child] of this.children.entries()) if (index !== except) send(child, message)
  }

  /** Stops all workers, and resolves once they have ended. */
  async stop(): Promise<void> {
    this.isStopping = true
    for (const child of this.children) child?.kill('SIGTERM')
    const timer = setTimeout(() => {
      for (const child of this.children) child?.kill('SIGKILL')
    }, STOP_MS)
    await Promise.all(this.keeping)
    clearTimeout(timer)
  }

  /** Keeps a worker running: starts it again whenever it ends. Resolves once the pool has stopped. */
  private async keep(
    index: number,
    firstId: string,
    common: CommonStart,
    first: PromiseWithResolvers<void>,
  ): Promise<void> {
    const { register, log } = this.deps
    let start: WorkerStart = { ...common, index, instanceId: firstId, previousInstanceId: undefined }
    let hasStarted = false
    for (let delay = RESTART_DELAY_MIN_MS; !this.isStopping; delay = Math.min(delay * 2, RESTART_DELAY_MAX_MS)) {
      const { wasReady, problem, code } = await this.run(index, start, first.resolve)
      hasStarted ||= wasReady
      if (!hasStarted) {
        const reason = problem ?? `a worker ended with ${code} before it was ready`
        return first.reject(new StartError(reason))
      }
      if (this.isStopping) return
      log.error('a worker has ended; starting it again', { worker: index, code, ...(problem && { problem }) })
      if (wasReady) delay = RESTART_DELAY_MIN_MS
      const previousInstanceId = start.instanceId
      start = { ...start, instanceId: crypto.randomUUID(), previousInstanceId }
      // If this fails, the others take over the partitions once the lease of the previous worker has expired.
      await register(start.instanceId, previousInstanceId).catch((error) =>
        log.warn('a worker cannot be registered', { worker: index, error }),
      )
      await Bun.sleep(delay)
    }
  }

  /** Runs a worker until it ends. */
  private async run(index: number, start: WorkerStart, onReady: () => void) {
    let wasReady = false
    let problem: string | undefined
    const child = Bun.spawn([process.execPath, join(import.meta.dir, 'worker.ts')], {
      stdio: ['ignore', 'ignore', 'inherit'],
      ipc: (message: FromWorker) => {
        if (message.type === 'ready') {
          wasReady = true
          onReady()
        } else if (message.type === 'failed') problem = message.message
        else if (message.type === 'outdated') this.deps.onOutdated()
        else this.broadcast(message, index)
      },
    })
    this.children[index] = child
    send(child, { type: 'start', start })
    if (this.isStopping) child.kill('SIGTERM')
    await child.exited
    this.children[index] = undefined
    return { wasReady, problem, code: child.signalCode ?? child.exitCode }
  }
}

/** Sends a message, unless the worker has just ended. */
function send(child: Child | undefined, message: ToWorker): void {
  try {
    child?.send(message)
  } catch {}
}
