import { Webhook } from 'standardwebhooks'
import type { Tenant } from './feeds.ts'
import { atEnd } from './teardown.ts'

export interface Received {
  readonly id: string
  readonly at: number
  // biome-ignore lint/suspicious/noExplicitAny: tests read what they expect.
  readonly body: any
  readonly headers: Headers
}

export interface Receiver {
  readonly url: string
  /** Messages whose signature is valid, oldest first. */
  readonly received: readonly Received[]
  /** The number of calls whose signature is not. */
  readonly refused: number
  /** Verifies with this secret from now on. */
  secret: string
}

/**
 * A receiver written with the package `standardwebhooks` alone.
 * @param answer the response to a valid message; undefined: 204
 */
export function startReceiver(
  answer: (message: Received) => Response | undefined | Promise<Response | undefined> = () => undefined,
): Receiver {
  const received: Received[] = []
  const state = { secret: '', refused: 0 }
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    development: false,
    async fetch(request) {
      const text = await request.text()
      const { headers } = request
      try {
        const body = new Webhook(state.secret).verify(text, Object.fromEntries(headers))
        const message = { id: headers.get('webhook-id') ?? '', at: Date.now(), body, headers }
        received.push(message)
        return (await answer(message)) ?? new Response(null, { status: 204 })
      } catch {
        state.refused++
        return new Response('the signature is not valid', { status: 401 })
      }
    },
  })
  atEnd(() => server.stop(true))
  return {
    url: `http://127.0.0.1:${server.port}/hook`,
    received,
    get refused() {
      return state.refused
    },
    get secret() {
      return state.secret
    },
    set secret(secret) {
      state.secret = secret
    },
  }
}

/** Creates an endpoint that sends to the receiver. @returns its id */
export async function createWebhook(
  { api }: Pick<Tenant, 'api'>,
  receiver: Receiver,
  more: object = {},
): Promise<string> {
  const { data } = await api('POST', '/api/v1/webhooks', { url: receiver.url, ...more })
  receiver.secret = data.secret
  return data.webhook_id
}
