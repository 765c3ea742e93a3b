import { gunzipSync } from 'node:zlib'
import { Client, type ClientOptions, type ReportError } from '../../src/client/node.ts'
import { type Api, newAgent } from './api.ts'
import { atEnd } from './teardown.ts'

/** A call as the service receives it. */
export interface ReceivedCall {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: Headers
  readonly atMs: number
  readonly encoding: string | null
  readonly text: string
}

export type Answer = (call: ReceivedCall) => Response | Promise<Response>

/** What the service answers when it accepts a report. */
export function accept({ path, text }: ReceivedCall): Response {
  const body = JSON.parse(text)
  const data = /\/(events|scores)$/.test(path)
    ? { accepted: (body.events ?? body.scores).length, duplicates: 0, first_seq: 1, last_seq: 1, rejected: [] }
    : path.endsWith('/tasks')
      ? { task_id: body.task.id, status: body.task.status, created: true, applied: true }
      : { run_id: body.run_id }
  return Response.json({ data, error: null })
}

/** What the service answers when it refuses a call. */
export function refuse(status: number, code: string, headers: Record<string, string> = {}): Answer {
  return () => Response.json({ data: null, error: { code, message: 'why' } }, { status, headers })
}

/** What it answers when it can never accept this very request. */
export function refuseRequest(status: number, code: string): Answer {
  return refuse(status, code, { 'x-refused': 'request' })
}

const LIMITS = { body_bytes: 10 * 2 ** 20, events_per_call: 5_000 }

/** A service that gives these responses, one after the other, and repeats the last one. */
export function serveReports(...answers: readonly Answer[]) {
  const received: ReceivedCall[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const { method, headers } = request
      const { pathname: path, searchParams: query } = new URL(request.url)
      if (path === '/api/v1/limits') return Response.json({ data: LIMITS, error: null })
      const nth = received.length
      const encoding = headers.get('content-encoding')
      const bytes = new Uint8Array(await request.arrayBuffer())
      const text = (encoding === null ? Buffer.from(bytes) : gunzipSync(bytes)).toString()
      const call = { method, path, query, headers, atMs: performance.now(), encoding, text }
      received.push(call)
      return answers[Math.min(nth, answers.length - 1)]!(call)
    },
  })
  atEnd(() => server.stop(true))
  return { url: `http://127.0.0.1:${server.port}`, received }
}

/** A client that reports, and the errors that it passed on. */
export function reportingClient(options: ClientOptions) {
  const errors: ReportError[] = []
  const client = new Client({ flushAtExit: false, onError: (error) => errors.push(error), ...options })
  return { client, errors }
}

/** The environment of a program that reports for a new agent. */
export async function reporterEnv({ url, api }: { readonly url: string; readonly api: Api }) {
  const { agentId, agentKey } = await newAgent(api)
  return { AGENT_RUN_URL: url, AGENT_RUN_KEY: agentKey, AGENT_RUN_AGENT_ID: agentId }
}
