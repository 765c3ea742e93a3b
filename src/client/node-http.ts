import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import type { OutgoingRequest, SmallResponse } from './http.ts'

const KEEP_ALIVE = { keepAlive: true } as const
const AGENTS = { http: new HttpAgent(KEEP_ALIVE), https: new HttpsAgent(KEEP_ALIVE) } as const

/**
 * Sends a request with `node:http`. The `fetch` of Node copies every body and leaves the copies to the garbage collector, which
 * doubles the memory of a process that reports much.
 */
export function sendWithNode(url: string, { method, headers, body, signal }: OutgoingRequest): Promise<SmallResponse> {
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
