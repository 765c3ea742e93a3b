import { LRUCache } from 'lru-cache'
import OpenAI from 'openai'
import { sleep } from '../base/abort.ts'
import type { Log } from '../base/log.ts'
import type { Model, ModelAnswer, ModelRequest } from './model.ts'
import { readStream, readWhole } from './openai-answer.ts'
import { createRedact, Fault, modelFailureOf, unanswered } from './openai-failure.ts'
import { type Dialect, fallBack, firstDialect, toBody } from './openai-request.ts'

export interface OpenAiOptions {
  /** Undefined: the server needs none, like most local ones. */
  readonly apiKey: string | undefined
  /** For example `http://localhost:11434/v1`; undefined: OpenAI. */
  readonly baseUrl: string | undefined
  readonly log?: Log
  /** Delay before the first retry; it doubles with each. */
  readonly backoffMs?: number
}

/** Attempts per answer, including the first. */
const ATTEMPTS_MAX = 4
const BACKOFF_MS = 500
const BACKOFF_MAX_MS = 8_000
/** With a longer Retry-After, the run fails at once with the provider's message. */
const RETRY_AFTER_MAX_MS = 60_000
/** Maximum number of models and schemas whose dialect is cached. */
const DIALECTS_MAX = 1_000
const OPENAI_HOST = 'api.openai.com'
/** The longest possible timer. The signal sets the deadline. */
const NO_TIMEOUT_MS = 2 ** 31 - 1

/**
 * A model behind OpenAI's chat completions, or behind any server that offers them (docs/specification.md#hosted-agents:
 * `OPENAI_API_KEY`, `OPENAI_BASE_URL`). One per process: it holds the connections and the dialects that servers accept.
 *
 * The `openai` package makes the requests. Answers are read here, because the package neither bounds them nor
 * distinguishes a broken stream from one that ended, and takes 1.5 times as long per token.
 */
export function createOpenAiModel({ apiKey, baseUrl, log, backoffMs = BACKOFF_MS }: OpenAiOptions): Model {
  const client = createClient(apiKey, baseUrl)
  const redact = createRedact(apiKey)
  const first = firstDialect(URL.parse(client.baseURL)?.hostname === OPENAI_HOST)
  const dialects = new LRUCache<string, Dialect>({ max: DIALECTS_MAX })

  async function ask(request: ModelRequest, signal: AbortSignal): Promise<ModelAnswer> {
    const asking = new RequestAttempts(client, request, signal)
    const key = dialectKey(request)
    let dialect = dialects.get(key) ?? first
    for (let attempts = 1; ; ) {
      const body = toBody(request, dialect)
      const outcome = await asking.attempt(body)
      if (!(outcome instanceof Fault)) {
        if (dialect !== first) dialects.set(key, dialect)
        return outcome
      }
      const fallback = fallBack(dialect, body, outcome)
      if (fallback === undefined) {
        const waitMs = outcome.retryAfterMs ?? backoff(backoffMs, attempts)
        if (!outcome.isTransient || attempts === ATTEMPTS_MAX || waitMs > RETRY_AFTER_MAX_MS)
          throw modelFailureOf(outcome, attempts, redact)
        attempts += 1
        warn(request, outcome, { attempt: attempts, wait_ms: Math.round(waitMs) })
        await sleep(waitMs, signal)
        signal.throwIfAborted()
      }
      dialect = fallback ?? dialect
      asking.restart()
    }
  }

  function warn({ model }: ModelRequest, { message, status, code }: Fault, fields: object): void {
    const problem = redact(message).slice(0, 200)
    log?.warn('the model provider failed; retrying', { model, status, code, problem, ...fields })
  }

  return { ask }
}

/** One request of the executor, with all attempts at it. */
class RequestAttempts {
  private hasStreamed = false

  constructor(
    private readonly client: OpenAI,
    private readonly request: ModelRequest,
    private readonly signal: AbortSignal,
  ) {}

  /** @throws what `onText` throws, and any error once the signal has aborted */
  async attempt(body: OpenAI.Chat.ChatCompletionCreateParams): Promise<ModelAnswer | Fault> {
    this.signal.throwIfAborted()
    try {
      const response = await this.send(body)
      const { onText } = this.request
      if (onText === undefined) return await readWhole(response, this.request)
      return await this.read(response, onText)
    } catch (error) {
      this.signal.throwIfAborted()
      if (error instanceof Fault) return error
      throw error
    }
  }

  restart(): void {
    if (this.hasStreamed) this.request.onRestart?.()
    this.hasStreamed = false
  }

  private async send(body: OpenAI.Chat.ChatCompletionCreateParams): Promise<Response> {
    try {
      return await this.client.chat.completions.create(body, { signal: this.signal }).asResponse()
    } catch (error) {
      throw unanswered(error)
    }
  }

  private async read(response: Response, onText: (delta: string) => void): Promise<ModelAnswer> {
    const onDelta = (delta: string) => {
      this.signal.throwIfAborted()
      this.hasStreamed = true
      onText(delta)
    }
    // Some servers cannot stream and send a whole answer; proxies send HTML pages.
    if (!/application\/json|text\/html/.test(response.headers.get('content-type') ?? ''))
      return await readStream(response, this.request, onDelta)
    const answer = await readWhole(response, this.request)
    if (answer.content !== null) onDelta(answer.content)
    return answer
  }
}

function createClient(apiKey: string | undefined, baseUrl: string | undefined): OpenAI {
  return new OpenAI({
    // The package requires a key; servers that need none ignore it.
    apiKey: apiKey ?? 'none',
    baseURL: baseUrl ?? null,
    // If omitted, the package would read these from the environment.
    organization: null,
    project: null,
    adminAPIKey: null,
    webhookSecret: null,
    logLevel: 'off',
    maxRetries: 0,
    timeout: NO_TIMEOUT_MS,
    // Bun gives up on a server that is silent for five minutes, but a reasoning model may take longer.
    fetchOptions: { timeout: false } as object,
  })
}

/** The dialect depends on the schema: a server may refuse one and accept others. */
function dialectKey({ model, outputSchema }: ModelRequest): string {
  return outputSchema === null ? model : `${model} ${Bun.hash(JSON.stringify(outputSchema))}`
}

/** Exponential backoff with jitter, so that runs that failed together do not retry together. */
function backoff(firstMs: number, attempts: number): number {
  return Math.min(firstMs * 2 ** (attempts - 1), BACKOFF_MAX_MS) * (0.75 + Math.random() / 4)
}
