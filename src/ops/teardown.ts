import type { Log } from '../log.ts'

/** What has been started and must end, in the reverse order. One that fails to end does not keep the others from it. */
export class Teardown {
  private readonly steps: { readonly name: string; readonly end: () => unknown }[] = []
  private running: Promise<void> | undefined

  constructor(private readonly log: Log) {}

  add(name: string, end: () => unknown): void {
    this.steps.push({ name, end })
  }

  /** Ends everything, the latest first. Safe to call twice: the second call waits for the first. */
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
        this.log.error('could not end a part of the service', { part: name, error })
      }
      this.log.debug('ended', { part: name, ms: Math.round(performance.now() - startedAt) })
    }
  }
}
