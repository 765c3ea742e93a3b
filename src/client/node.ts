import { AsyncLocalStorage } from 'node:async_hooks'
import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { BaseClient } from './client.ts'
import type { OutgoingRequest, SmallResponse } from './http.ts'
import { openSpool } from './node-spool.ts'
import type { ClientOptions, Platform } from './options.ts'
import type { Task } from './run.ts'

export * from './index.ts'

/** As in the package.json. */
const VERSION = '0.1.0'
const KEEP_ALIVE = { keepAlive: true } as const
const AGENTS = { http: new HttpAgent(KEEP_ALIVE), https: new HttpsAgent(KEEP_ALIVE) } as const
const currentTask = new AsyncLocalStorage<Task>()

const NODE: Platform = {
  env: (name) => process.env[name],
  userAgent: `agent-run-service-js/${VERSION}`,
  warn: (error) => process.emitWarning(error),
  onExit,
  // Bun and Deno have a fetch that is faster than their node:http.
  transport: process.versions.bun === undefined && !('Deno' in globalThis) ? sendWithNode : undefined,
  openSpool,
  taskScope: { current: () => currentTask.getStore(), enter: (task, work) => currentTask.run(task, work) },
}

/** A client of the Agent Run Service, for Node, Bun and Deno: docs/client.md. */
export class Client extends BaseClient {
  /** @throws Error when an option is missing or wrong, or the spool cannot be used */
  constructor(options: ClientOptions = {}) {
    super(options, NODE)
  }
}

/**
 * Sends a request with `node:http`. The `fetch` of Node copies every body and leaves the copies to the garbage collector, which
 * doubles the memory of a process that reports much.
 */
function sendWithNode(url: string, { method, headers, body, signal }: OutgoingRequest): Promise<SmallResponse> {
  const isSecure = url.startsWith('https:')
  const request = isSecure ? requestHttps : requestHttp
  const agent = isSecure ? AGENTS.https : AGENTS.http
  const length = body === null ? {} : { 'content-length': String(body.length) }
  return new Promise((resolve, reject) => {
    const options = { method, headers: { ...headers, ...length }, agent, ...(signal !== null && { signal }) }
    const sent = request(url, options, (response) => readResponse(response).then(resolve, reject))
    sent.on('error', reject)
    sent.end(body ?? undefined)
  })
}

async function readResponse(response: IncomingMessage): Promise<SmallResponse> {
  response.setEncoding('utf8')
  let text = ''
  for await (const chunk of response) text += chunk
  const { statusCode: status = 0, headers } = response
  return {
    ok: status >= 200 && status < 300,
    status,
    headers: { get: (name) => headers[name]?.toString() ?? null },
    json: async () => JSON.parse(text) as unknown,
  }
}

type Finish = () => Promise<unknown>

const SIGNALS = ['SIGTERM', 'SIGINT'] as const

const finishers = new Set<Finish>()
let isListening = false

/**
 * Calls `finish` when nothing is left to do, and on SIGTERM and SIGINT. @returns a function that undoes it. One set of
 * listeners serves all clients.
 */
function onExit(finish: Finish): () => void {
  finishers.add(finish)
  listen()
  return () => {
    finishers.delete(finish)
    if (finishers.size === 0) ignore()
  }
}

function listen(): void {
  if (isListening) return
  isListening = true
  process.once('beforeExit', finishAll)
  for (const signal of SIGNALS) process.on(signal, finishAndEnd)
}

function ignore(): void {
  isListening = false
  process.off('beforeExit', finishAll)
  for (const signal of SIGNALS) process.off(signal, finishAndEnd)
}

async function finishAll(): Promise<void> {
  await Promise.all([...finishers].map((finish) => finish()))
}

/**
 * A process that handles the signal itself decides when to end. Otherwise the signal terminates it as usual; a second one
 * terminates it immediately.
 */
async function finishAndEnd(signal: NodeJS.Signals): Promise<void> {
  const isOurs = process.listenerCount(signal) === 1
  if (isOurs) process.off(signal, finishAndEnd)
  await finishAll()
  if (isOurs) process.kill(process.pid, signal)
}
