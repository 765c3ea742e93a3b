import { createParser } from 'eventsource-parser'
import { memberAt, reportedUsage } from '../../base/conventions/usage.ts'
import { isObject } from '../../base/json-object.ts'
import type { ModelAnswer, ModelMessage, ModelRequest, ModelToolCall, ModelUsage } from './model.ts'
import { brokenAnswer, Fault, faultInBody, plainText } from './openai-failure.ts'
import { nonEmpty, ProviderParts, ThoughtFilter } from './openai-reasoning.ts'

const TEXT_LENGTH_MAX = 10 * 1024 * 1024
const TOOL_CALLS_MAX = 128
const ARGUMENTS_LENGTH_MAX = 1024 * 1024
/** Of tools, of their calls, and of models. */
const NAME_LENGTH_MAX = 1_000
/** Reasoning and other members that the provider wants back, of a message with its tool calls; in characters of JSON. */
const EXTRA_LENGTH_MAX = 4 * 1024 * 1024
/** Fits an answer of the maximum length, escaped. */
const BODY_BYTES_MAX = 32 * 1024 * 1024
/** Longest event of a stream, in characters. Bounds the memory used for a server that never ends a line. */
const EVENT_LENGTH_MAX = 32 * 1024 * 1024

/**
 * Reads a streamed answer. Compatible servers omit different parts, so only the essential ones are required: the answer
 * must have started, and ended with a finish reason or `[DONE]`.
 *
 * @throws Fault, and what `onText` throws
 */
export async function readStream(
  response: Response,
  request: ModelRequest,
  onText: (delta: string) => void,
): Promise<ModelAnswer> {
  const answer = new AnswerBuilder()
  let isDone = false
  const onEvent = (data: string, name: string) => {
    isDone = data === '[DONE]'
    if (isDone) return true
    const delta = answer.addChunk(parsed(data), name)
    if (delta !== '') onText(delta)
    return false
  }
  const afterRead = () => (request.slice?.isOver === true ? request.slice.yield() : undefined)
  const cut = response.body === null ? undefined : await readEvents(response.body, onEvent, afterRead)
  // A complete answer counts even if the connection broke afterwards.
  if (!isDone && !answer.isComplete) throw brokenAnswer(cut ?? 'the stream ended in the middle of an answer')
  const rest = answer.endText()
  if (rest !== '') onText(rest)
  return answer.finish(request)
}

/**
 * Reads an event stream and passes each event on as soon as its bytes have arrived. All events of one read are passed
 * on synchronously: with hundreds of streams, a promise for each event would be most of the work.
 *
 * @param onEvent called with the data and the event name (`message` if it has none); returns true to stop reading
 * @param afterRead called after the events of each read; the next read waits for the promise that it returns
 * @returns the error that broke the connection, if one did
 * @throws Fault when an event is too long, and whatever `onEvent` throws
 */
export async function readEvents(
  body: ReadableStream<Uint8Array>,
  onEvent: (data: string, name: string) => boolean,
  afterRead: () => Promise<void> | undefined = () => undefined,
): Promise<unknown> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let isDone = false
  const parser = createParser({
    maxBufferSize: EVENT_LENGTH_MAX,
    onEvent: ({ data, event = 'message' }) => {
      isDone ||= onEvent(data, event)
    },
    onError: ({ type }) => {
      if (type === 'max-buffer-size-exceeded') throw tooLong('an event')
    },
  })
  try {
    while (!isDone) {
      const read = await reader.read().catch((error: unknown) => ({ error }))
      if ('error' in read) return read.error
      // Some servers omit the empty line after their last event.
      parser.feed(read.done ? `${decoder.decode()}\n\n` : decoder.decode(read.value, { stream: true }))
      if (read.done) return undefined
      await afterRead()
    }
    return undefined
  } finally {
    // Closes the connection if there is more to come; otherwise does nothing.
    reader.cancel().catch(() => {})
  }
}

/** Reads an answer that is not streamed. @throws Fault */
export async function readWhole(response: Response, request: ModelRequest): Promise<ModelAnswer> {
  const answer = new AnswerBuilder()
  answer.addWhole(parsed(await boundedText(response)))
  answer.endText()
  return answer.finish(request)
}

async function boundedText(response: Response): Promise<string> {
  const declared = Number(response.headers.get('content-length') ?? Number.NaN)
  try {
    if (declared > BODY_BYTES_MAX) {
      response.body?.cancel().catch(() => {})
      throw tooLong('an answer')
    }
    // The usual case, and the fastest. For a compressed body, Content-Length does not bound the size.
    if (declared <= BODY_BYTES_MAX && !response.headers.has('content-encoding')) return await response.text()
    const decoder = new TextDecoder()
    let text = ''
    let bytes = 0
    for await (const chunk of response.body ?? []) {
      bytes += chunk.byteLength
      if (bytes > BODY_BYTES_MAX) throw tooLong('an answer')
      text += decoder.decode(chunk, { stream: true })
    }
    return text + decoder.decode()
  } catch (error) {
    throw error instanceof Fault ? error : brokenAnswer(error)
  }
}

/** Malformed JSON is most likely a transmission error, so it is retried. */
function parsed(text: string): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    const start = plainText(text)
    throw new Fault(`the model provider's answer is not JSON: ${start === '' ? 'it is empty' : start}`, {
      isTransient: true,
    })
  }
  if (!isObject(value)) throw wrongShape(`expected an object; got ${plainText(text)}`)
  return value
}

interface DraftCall {
  readonly id: string
  readonly index: number | undefined
  name: string
  arguments: string
  readonly extra: Record<string, unknown>
}

/** Builds an answer from its parts. */
class AnswerBuilder {
  private content = ''
  private refusal = ''
  /** A high surrogate whose other half arrives with the next chunk. */
  private held = ''
  private readonly calls: DraftCall[] = []
  private readonly extra: Record<string, unknown> = {}
  private readonly parts = new ProviderParts()
  private readonly thoughts = new ThoughtFilter()
  private hasBegun = false
  private finishReason: string | undefined
  private usage: ModelUsage = { inputTokens: 0, outputTokens: 0 }
  private model: string | undefined
  private responseId: string | undefined

  /** The provider has sent a finish reason. */
  get isComplete(): boolean {
    return this.finishReason !== undefined
  }

  /** @returns the text that the chunk adds */
  addChunk(chunk: Record<string, unknown>, eventName: string): string {
    if (eventName === 'error') throw faultInBody(chunk.error ?? chunk)
    const choice = this.addHead(chunk)
    if (choice === undefined) return ''
    const delta = isObject(choice.delta) ? choice.delta : {}
    for (const call of listOf(delta.tool_calls)) this.addCallDelta(call)
    return this.addText(delta)
  }

  addWhole(body: Record<string, unknown>): void {
    const choice = this.addHead(body)
    if (choice === undefined) return
    if (!isObject(choice.message)) throw wrongShape(`the choice has no message: ${plainText(JSON.stringify(body))}`)
    for (const call of listOf(choice.message.tool_calls)) this.addArguments(this.startCall(call), call)
    this.addText(choice.message)
  }

  /** Reads the fields that chunks and whole answers share. @returns the choice, if there is one */
  private addHead(body: Record<string, unknown>): Record<string, unknown> | undefined {
    if (body.error !== undefined && body.error !== null) throw faultInBody(body.error)
    const usage = isObject(body.usage) ? body.usage : memberAt(body, 'x_groq.usage')
    if (isObject(usage)) this.usage = usageOf(usage)
    this.model ??= nameIn(body.model) || undefined
    this.responseId ??= nameIn(body.id) || undefined
    const [choice] = listOf(body.choices)
    if (choice === undefined) return undefined
    this.hasBegun = true
    this.finishReason = nameIn(choice.finish_reason) || this.finishReason
    if (choice.error !== undefined && choice.error !== null) throw faultInBody(choice.error)
    if (this.finishReason === 'error') throw faultInBody({ message: 'the answer ended with an error' })
    return choice
  }

  private addText(message: Record<string, unknown>): string {
    const { content, refusal } = message
    this.refusal += textOf(refusal)
    this.parts.addMessage(this.extra, message)
    if (this.parts.length > EXTRA_LENGTH_MAX) throw tooLong('reasoning')
    let text = this.held + textOf(content)
    this.held = /[\ud800-\udbff]$/.test(text) ? text.slice(-1) : ''
    if (this.held !== '') text = text.slice(0, -1)
    text = this.thoughts.add(text)
    this.content += text
    const length = this.content.length + this.thoughts.thought.length
    if (length > TEXT_LENGTH_MAX || this.refusal.length > TEXT_LENGTH_MAX) throw tooLong('an answer')
    return text
  }

  /** Call once all text has been added. @returns text that turns out to be a part of the answer */
  endText(): string {
    this.content += this.thoughts.add(this.held)
    this.held = ''
    const text = this.thoughts.end(this.finishReason === 'length')
    this.content += text
    return text.toWellFormed()
  }

  /** Finds the call that a delta continues. Servers identify it by index, by id, or not at all. */
  private addCallDelta(delta: Record<string, unknown>): void {
    const id = textOf(delta.id)
    const name = nameOf(delta)
    const index = typeof delta.index === 'number' ? delta.index : undefined
    let call = index === undefined ? undefined : this.calls.findLast((each) => each.index === index)
    if (call === undefined && id !== '') call = this.calls.find((each) => each.id === id)
    // Some servers give all calls the same index, but different ids.
    else if (call !== undefined && id !== '' && call.id !== '' && call.id !== id && name !== '') call = undefined
    else if (call === undefined && index === undefined && name === '') call = this.calls.at(-1)
    call ??= this.startCall(delta)
    if (call.name === '') call.name = name
    this.addArguments(call, delta)
  }

  private startCall(given: Record<string, unknown>): DraftCall {
    if (this.calls.length === TOOL_CALLS_MAX)
      throw new Fault(`the model provider's answer has more than ${TOOL_CALLS_MAX} tool calls`)
    const index = typeof given.index === 'number' ? given.index : undefined
    const call = { id: textOf(given.id), index, name: nameOf(given), arguments: '', extra: {} }
    this.calls.push(call)
    return call
  }

  private addArguments(call: DraftCall, given: Record<string, unknown>): void {
    this.parts.addCall(call.extra, given)
    const text = isObject(given.function) ? given.function.arguments : undefined
    call.arguments += isObject(text) ? JSON.stringify(text) : textOf(text)
    if (call.arguments.length > ARGUMENTS_LENGTH_MAX)
      throw new Fault(`the model provider's answer has a tool call with more than ${ARGUMENTS_LENGTH_MAX} characters`)
  }

  finish(request: ModelRequest): ModelAnswer {
    if (!this.hasBegun) throw wrongShape('it has no choices')
    const { thought } = this.thoughts
    // Some models need their thoughts to continue, and get them back where they wrote them.
    if (thought !== '') this.extra.content = (thought + this.content).toWellFormed()
    const extra = nonEmpty(this.extra)
    return {
      content: this.content.toWellFormed() || null,
      refusal: this.refusal.toWellFormed() || null,
      toolCalls: this.calls.length === 0 ? [] : withIds(this.calls, request.messages),
      finishReason: this.finishReason ?? (this.calls.length > 0 ? 'tool_calls' : 'stop'),
      usage: this.usage,
      model: this.model ?? request.model,
      responseId: this.responseId ?? null,
      ...(extra && { extra }),
    }
  }
}

/**
 * Gives an id to calls without a unique one. It is derived from the conversation, so that the same answer to the same
 * request has the same ids, and no two calls of a conversation share one.
 */
function withIds(calls: readonly DraftCall[], messages: readonly ModelMessage[]): ModelToolCall[] {
  const taken = new Set(
    messages.flatMap((message) => ('toolCalls' in message ? (message.toolCalls ?? []) : [])).map(({ id }) => id),
  )
  return calls.map((call, position) => {
    if (call.name === '') throw wrongShape('a tool call has no name')
    if (call.name.length > NAME_LENGTH_MAX) throw tooLong('the name of a tool')
    let id = call.id.length > NAME_LENGTH_MAX ? '' : call.id
    for (let turn = messages.length; id === '' || taken.has(id); turn++) id = `call_${turn}_${position}`
    taken.add(id)
    const extra = nonEmpty(call.extra)
    return { id, name: call.name, arguments: call.arguments.toWellFormed(), ...(extra && { extra }) }
  })
}

function usageOf(usage: Record<string, unknown>): ModelUsage {
  const { costUsd: _, ...counts } = reportedUsage((name) => roundedAt(usage, name)).usage()
  const { inputTokens, outputTokens, ...parts } = counts
  return { inputTokens, outputTokens, ...Object.fromEntries(Object.entries(parts).filter(([, tokens]) => tokens > 0)) }
}

/** Some servers report fractions. */
function roundedAt(usage: Record<string, unknown>, name: string): unknown {
  const value = memberAt(usage, name)
  return typeof value === 'number' ? Math.round(value) : value
}

function nameOf(call: Record<string, unknown>): string {
  return isObject(call.function) ? textOf(call.function.name) : ''
}

function nameIn(value: unknown): string {
  return textOf(value).slice(0, NAME_LENGTH_MAX)
}

/** Content as a string, or in parts, as some servers send it. Anything else is ignored. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  return Array.isArray(value) ? value.map((part) => (isObject(part) ? textOf(part.text) : '')).join('') : ''
}

function listOf(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

function wrongShape(what: string): Fault {
  return new Fault(`the model provider's answer is not a chat completion: ${what}`)
}

function tooLong(what: string): Fault {
  return new Fault(`the model provider sent ${what} longer than this service accepts`)
}
