import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { ApiError } from '../../../base/errors.ts'

const PROBE_BYTES = 64 * 1024
const PROBE_BYTES_MAX = 16 * 1024 * 1024
/** How long a result is cached: `/readyz` is public, and a probe costs a write. */
const HOLDS_MS = 1_000

/**
 * Tells whether the journal's directory accepts writes. After a failed append it does not until a probe of the same size
 * succeeds. Otherwise a recent successful append counts, or a probe when there was none.
 */
export class WriteProbe {
  private failedBytes = 0
  private soundAtMs = Number.NEGATIVE_INFINITY
  private probing: Promise<void> | undefined
  private lastProbe: { readonly atMs: number; readonly error: unknown } | undefined

  constructor(private readonly dir: string) {}

  /** Records a successful append. */
  succeeded(): void {
    this.failedBytes = 0
    this.soundAtMs = performance.now()
  }

  /** Records a failed append of `bytes` bytes. */
  failed(bytes: number): void {
    this.failedBytes = Math.max(bytes, PROBE_BYTES)
    this.lastProbe = undefined
  }

  /** @throws ApiError UNAVAILABLE when an append would fail */
  async check(): Promise<void> {
    const now = performance.now()
    if (this.failedBytes === 0 && now - this.soundAtMs < HOLDS_MS) return
    if (this.lastProbe === undefined || now - this.lastProbe.atMs > HOLDS_MS) {
      this.probing ??= this.probe()
      await this.probing
    }
    const error = this.lastProbe?.error
    if (error === undefined) return
    const isFull = (error as NodeJS.ErrnoException).code === 'ENOSPC'
    const message = isFull ? 'the journal cannot be written: its disk is full' : 'the journal cannot be written'
    throw new ApiError('UNAVAILABLE', message, { cause: error })
  }

  private async probe(): Promise<void> {
    const path = join(this.dir, 'probe')
    const bytes = Math.min(PROBE_BYTES_MAX, Math.max(this.failedBytes, PROBE_BYTES))
    let error: unknown
    try {
      // A new file each time: a full disk still accepts overwrites.
      const file = await open(path, 'w', 0o600)
      try {
        await file.writeFile(Buffer.alloc(bytes))
        await file.sync()
      } finally {
        await file.close()
      }
      this.failedBytes = 0
    } catch (cause) {
      error = cause
    }
    await rm(path, { force: true }).catch(() => {})
    this.lastProbe = { atMs: performance.now(), error }
    this.probing = undefined
  }
}
