import { LRUCache } from 'lru-cache'
import OpenAI from 'openai'
import { sleep } from '../../base/abort.ts'
import type { Log } from '../../base/log.ts'
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
 * A model behind OpenAI's chat completions, or behind any server that offers them (docs/hosted-agents.md:
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
    const { onText, onRestart } = request
    let hasStreamed = false
    const onDelta = (delta: string) => {
      signal.throwIfAborted()
      hasStreamed = true
      onText?.(delta)
    }
    const key = dialectKey(request)
    let dialect = dialects.get(key) ?? first
    for (let attempts = 1; ; ) {
      const body = toBody(request, dialect)
      const outcome = await attempt(client, body, request, onDelta, signal)
      if (!(outcome instanceof Fault)) {
        if (dialect !== first) dialects.set(key, dialect)
        const hasLeftOut = request.temperature !== null && !dialect.sendsTemperature
        return hasLeftOut ? { ...outcome, leftOut: ['temperature'] } : outcome
      }
      const fallback = fallBack(dialect, body, outcome)
      if (fallback === undefined) {
        const { isTransient, retryAfterMs } = outcome.details
        const waitMs = retryAfterMs ?? backoff(backoffMs, attempts)
        if (isTransient !== true || attempts === ATTEMPTS_MAX || waitMs > RETRY_AFTER_MAX_MS)
          throw modelFailureOf(outcome, attempts, redact)
        attempts += 1
        warn(request, outcome, { attempt: attempts, wait_ms: Math.round(waitMs) })
        await sleep(waitMs, signal)
        signal.throwIfAborted()
      }
      if (dialect.sendsTemperature && fallback?.sendsTemperature === false)
        log?.warn('the model provider refuses a temperature; it is left out', { model: request.model })
      dialect = fallback ?? dialect
      if (hasStreamed) onRestart?.()
      hasStreamed = false
    }
  }

  function warn({ model }: ModelRequest, { message, details }: Fault, fields: object): void {
    const { status, code } = details
    const problem = redact(message).slice(0, 200)
    log?.warn('the model provider failed; retrying', { model, status, code, problem, ...fields })
  }

  return { ask }
}

/** @throws what `onText` throws, and any error once the signal has aborted */
async function attempt(
  client: OpenAI,
  body: OpenAI.Chat.ChatCompletionCreateParams,
  request: ModelRequest,
  onText: (delta: string) => void,
  signal: AbortSignal,
): Promise<ModelAnswer | Fault> {
  signal.throwIfAborted()
  try {
    const sent = client.chat.completions.create(body, { signal }).asResponse()
    const response = await sent.catch((error) => {
      throw unanswered(error)
    })
    // Some servers cannot stream and send a whole answer; proxies send HTML pages.
    const isWhole = /application\/json|text\/html/.test(response.headers.get('content-type') ?? '')
    if (request.onText !== undefined && !isWhole) return await readStream(response, request, onText)
    const answer = await readWhole(response, request)
    if (request.onText !== undefined && answer.content !== null) onText(answer.content)
    return answer
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof Fault) return error
    throw error
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
