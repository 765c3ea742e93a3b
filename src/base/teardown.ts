import type { Log } from './log.ts'

/**
 * Stops the started components in reverse order. One that fails to stop does not prevent the others from stopping.
 */
export class Teardown {
  private readonly steps: { readonly name: string; readonly end: () => unknown }[] = []
  private running: Promise<void> | undefined

  constructor(private readonly log: Log) {}

  /** Runs `start`, which adds a step for each component that it starts. If it fails, these components are stopped. */
  static async ifStartFails<Started>(log: Log, start: (teardown: Teardown) => Promise<Started>): Promise<Started> {
    const teardown = new Teardown(log)
    try {
      return await start(teardown)
    } catch (error) {
      await teardown.run()
      throw error
    }
  }

  /** Adds a step that stops a component. Steps run in reverse order. */
  add(name: string, end: () => unknown): void {
    this.steps.push({ name, end })
  }

  /** Runs all steps, the newest first. A second call waits for the first. */
  run(): Promise<void> {
    this.running ??= this.runAll()
    return this.running
  }

  private async runAll(): Promise<void> {
    for (const { name, end } of this.steps.reverse()) {
      const startedAt = performance.now()
      try {
        await end()
      } catch (error) {
        this.log.error('could not stop a component', { component: name, error })
      }
      this.log.debug('stopped', { component: name, ms: Math.round(performance.now() - startedAt) })
    }
  }
}
