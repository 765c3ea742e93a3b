import { TIMER_MAX_MS } from './backoff.ts'

/** A signal that aborts with the caller's, or when the service is silent for too long. `AbortSignal.any` is missing in Node 18. */
export class Deadline {
  readonly controller = new AbortController()
  private readonly onAbort = () => this.controller.abort(this.caller?.reason)
  private timer: ReturnType<typeof setTimeout> | undefined

  constructor(
    private readonly caller: AbortSignal | undefined,
    private readonly ms: number,
  ) {
    caller?.addEventListener('abort', this.onAbort)
    if (caller?.aborted === true) this.onAbort()
    this.restart()
  }

  /** Called when the service has sent something. */
  restart(): void {
    clearTimeout(this.timer)
    const onTimeout = () => this.controller.abort(new Error('the service did not respond in time'))
    this.timer = setTimeout(onTimeout, Math.min(this.ms, TIMER_MAX_MS))
  }

  /** Stops the timer without aborting the signal. */
  close(): void {
    clearTimeout(this.timer)
    this.caller?.removeEventListener('abort', this.onAbort)
  }
}
