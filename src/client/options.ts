import type { ReportError } from './errors.ts'
import type { Fetch, Transport } from './http.ts'
import type { Spool } from './node-spool.ts'
import type { TaskScope } from './run.ts'

/** What differs between Node (and Bun, Deno) and browsers. */
export interface Platform {
  readonly env: (name: string) => string | undefined
  /** Undefined if the platform sends its own. */
  readonly userAgent?: string | undefined
  /** Called with lost reports when the program does not handle them itself. */
  readonly warn: (error: ReportError) => void
  /**
   * Calls `finish` when the program is about to end, and lets it wait a moment.
   * @returns a function that undoes it
   */
  readonly onExit: (finish: () => Promise<unknown>) => () => void
  /** Default: `fetch`. */
  readonly transport?: Transport | undefined
  /** @throws Error when the file cannot be used, or another process uses it */
  readonly openSpool: (path: string) => Spool
  /** Default: none. Then an event is part of a task only if it is reported on the task itself. */
  readonly taskScope?: TaskScope | undefined
}

/** Browsers: no environment, no files, and no moment to wait at the end. */
export const WEB: Platform = {
  env: () => undefined,
  warn: (error) => globalThis.reportError?.(error),
  onExit: () => () => {},
  openSpool() {
    throw new Error('a spool needs a file system; import the client in Node, Bun or Deno')
  },
}

/** Options of a client; docs/client.md#options describes each. */
export interface ClientOptions {
  /** URL of the service. Default: `AGENT_RUN_URL`, or `http://127.0.0.1:3000`. */
  readonly url?: string | undefined
  /** An agent key to report runs, or a workspace key. Default: `AGENT_RUN_KEY`. */
  readonly key?: string | undefined
  /** The agent of runs that name none. Default: `AGENT_RUN_AGENT_ID`. */
  readonly agentId?: string | undefined
  /** What happens when the buffer is full: `drop` (default) drops the oldest, `wait` first makes `await run.event(…)` wait. */
  readonly whenFull?: 'wait' | 'drop' | undefined
  /** How long callers wait for room with `whenFull: 'wait'`. Default: 5 s. */
  readonly waitTimeoutMs?: number | undefined
  /** Bytes of reports that wait in memory. Default: 2 MiB. */
  readonly bufferBytes?: number | undefined
  /** How long reports wait to be sent together. Default: 150 ms. */
  readonly flushIntervalMs?: number | undefined
  /** A file that holds reports until they are acknowledged. Not in browsers. */
  readonly spool?: string | undefined
  /** The most that the spool holds. Default: 1 GiB. */
  readonly spoolBytes?: number | undefined
  /** Whether to compress what is sent. Default: unless the service is on this machine. */
  readonly compress?: boolean | undefined
  /** Called with every loss. Default: a warning of the process, at most one every five seconds. */
  readonly onError?: ((error: ReportError) => void) | undefined
  /** Whether to send what is left when the program ends, or on SIGTERM and SIGINT. Default: true. */
  readonly flushAtExit?: boolean | undefined
  /** How long `close` and the end of the program wait for what is left. Default: 5 s. */
  readonly closeTimeoutMs?: number | undefined
  /** How long one attempt of a call may take; calls that last as long as a run or a query have no limit. Default: 30 s. */
  readonly timeoutMs?: number | undefined
  /** How often calls other than reports, which are always repeated, are repeated after temporary failures. Default: 10. */
  readonly maxRetries?: number | undefined
  readonly fetch?: Fetch | undefined
  /** Called before a call is repeated. */
  readonly onRetry?: (() => void) | undefined
  /** Called after each successful call, with the duration of the successful attempt. */
  readonly onResponse?: ((path: string, ms: number) => void) | undefined
}

type Optional = 'agentId' | 'spool' | 'onRetry' | 'onResponse'

/** How the keys of a workspace begin. */
const WORKSPACE_KEY = 'svc_ws_'

type Filled<Options> = { [K in keyof Options]-?: Exclude<Options[K], undefined> }

/** Options with their defaults. */
export interface Settings extends Filled<Omit<ClientOptions, Optional | 'key'>>, Pick<ClientOptions, Optional> {
  /** Why the key cannot report runs, and what to do; undefined if it may be able to. */
  readonly keyProblem: string | undefined
  readonly headers: () => Readonly<Record<string, string>>
  readonly transport: Transport
}

const DEFAULT_URL = 'http://127.0.0.1:3000'
const BUFFER_BYTES = 2 * 2 ** 20
const FLUSH_INTERVAL_MS = 150
const SPOOL_BYTES = 2 ** 30
const WAIT_TIMEOUT_MS = 5_000
const CLOSE_TIMEOUT_MS = 5_000
const TIMEOUT_MS = 30_000
/** With backoff, these take about 20 s: a restart of the service. */
const MAX_RETRIES = 10
const WARNING_INTERVAL_MS = 5_000

/** Fills in the defaults. @throws Error that says what is missing or wrong */
export function readOptions(options: ClientOptions, platform: Platform): Settings {
  const url = readUrl(options.url ?? (platform.env('AGENT_RUN_URL') || DEFAULT_URL))
  const key = options.key ?? platform.env('AGENT_RUN_KEY')?.trim() ?? ''
  if (key === '') throw new Error('no key: pass key to the client, or set AGENT_RUN_KEY')
  // Errors of HTTP clients would show it.
  if (!/^[\x21-\x7e]+$/.test(key)) throw new Error('key must consist of printable ASCII characters')
  const { userAgent } = platform
  const warn = throttled(platform.warn)
  // Called as a function of its own, which browsers require.
  const fetch: Fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init))
  const transport = options.fetch === undefined ? platform.transport : undefined
  const agentId = options.agentId ?? (platform.env('AGENT_RUN_AGENT_ID') || undefined)
  return {
    url,
    keyProblem: key.startsWith(WORKSPACE_KEY) ? workspaceKeyProblem(url, agentId) : undefined,
    headers: () => ({ authorization: `Bearer ${key}`, ...(userAgent !== undefined && { 'user-agent': userAgent }) }),
    agentId,
    whenFull: options.whenFull ?? 'drop',
    waitTimeoutMs: positive('waitTimeoutMs', options.waitTimeoutMs ?? WAIT_TIMEOUT_MS),
    bufferBytes: positive('bufferBytes', options.bufferBytes ?? BUFFER_BYTES),
    flushIntervalMs: positive('flushIntervalMs', options.flushIntervalMs ?? FLUSH_INTERVAL_MS),
    spool: options.spool,
    spoolBytes: positive('spoolBytes', options.spoolBytes ?? SPOOL_BYTES),
    compress: options.compress ?? !isLoopback(url),
    onError: options.onError === undefined ? warn : guarded(options.onError, warn),
    flushAtExit: options.flushAtExit ?? true,
    closeTimeoutMs: options.closeTimeoutMs ?? CLOSE_TIMEOUT_MS,
    timeoutMs: positive('timeoutMs', options.timeoutMs ?? TIMEOUT_MS),
    maxRetries: options.maxRetries ?? MAX_RETRIES,
    fetch,
    transport: transport ?? ((target, request) => fetch(target, { ...request, redirect: 'manual' })),
    onRetry: options.onRetry,
    onResponse: options.onResponse,
  }
}

function workspaceKeyProblem(url: string, agentId = '<agent id>'): string {
  const call = `curl -X POST ${url}/api/v1/agents/${agentId}/keys -H "Authorization: Bearer <the workspace key>"`
  return `the key is a workspace key (${WORKSPACE_KEY}…), but only a key of the agent can report its runs. Make one and pass it as key, or set AGENT_RUN_KEY: ${call}`
}

function readUrl(text: string): string {
  const url = text.trim()
  if (!/^https?:\/\/./.test(url)) throw new Error(`url must begin with http:// or https://; got "${text}"`)
  return url.replace(/\/+$/, '')
}

function positive(name: string, value: number): number {
  if (value > 0) return value
  throw new Error(`${name} must be greater than 0; got ${value}`)
}

/** Compressing costs more processor time than it saves where no network is involved. */
function isLoopback(url: string): boolean {
  return /^https?:\/\/(localhost|127(\.\d+){3}|\[::1\])([:/]|$)/.test(url)
}

/** A handler that fails must not stop the reports; what it should have handled is shown instead. */
function guarded(onError: (error: ReportError) => void, warn: (error: ReportError) => void) {
  return (error: ReportError) => {
    try {
      onError(error)
    } catch {
      warn(error)
    }
  }
}

function throttled(warn: (error: ReportError) => void): (error: ReportError) => void {
  let quietUntil = Number.NEGATIVE_INFINITY
  return (error) => {
    const now = performance.now()
    if (now < quietUntil) return
    quietUntil = now + WARNING_INTERVAL_MS
    warn(error)
  }
}
