import type { ServerWebSocket } from 'bun'

/**
 * Baseline for feeds: plain Bun. `/ws` and `/sse` accept subscribers; `POST /publish/ws` and `/publish/sse`
 * send the body to all of them once and then respond; `?seconds=` repeats it for that time and returns the count.
 * Prints its port.
 */

/** Many times the service's queue for a slow client: the loop waits, so that nothing is ever dropped. */
const BUFFERED_MAX = 1024 * 1024

const sockets = new Set<ServerWebSocket<unknown>>()
const streams = new Set<ReadableStreamDefaultController<Uint8Array>>()

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  idleTimeout: 0,
  async fetch(request, server) {
    const { pathname, searchParams } = new URL(request.url)
    if (pathname === '/ws') return server.upgrade(request) ? undefined : new Response(null, { status: 400 })
    if (pathname === '/sse') return stream()
    const text = await request.text()
    const bytes = Buffer.from(text)
    const publish = pathname.endsWith('ws') ? () => server.publish('all', text) : () => enqueue(bytes)
    const full = pathname.endsWith('ws') ? socketsFull : streamsFull
    const endsAt = performance.now() + Number(searchParams.get('seconds') ?? 0) * 1000
    let times = 0
    do {
      publish()
      times++
      await new Promise((resolve) => setImmediate(resolve))
      while (full()) await Bun.sleep(1)
    } while (performance.now() < endsAt)
    return Response.json({ times })
  },
  websocket: {
    idleTimeout: 0,
    backpressureLimit: 1024 * BUFFERED_MAX,
    open(socket) {
      sockets.add(socket)
      socket.subscribe('all')
    },
    message() {},
    close: (socket) => void sockets.delete(socket),
  },
})

function stream(): Response {
  let own: ReadableStreamDefaultController<Uint8Array>
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        own = controller
        streams.add(controller)
        controller.enqueue(Buffer.from(': connected\n\n'))
      },
      cancel: () => void streams.delete(own),
    },
    { highWaterMark: 64 * 1024, size: (chunk) => chunk?.length ?? 0 },
  )
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
}

function enqueue(bytes: Uint8Array): void {
  for (const controller of streams) controller.enqueue(bytes)
}

function socketsFull(): boolean {
  for (const socket of sockets) if (socket.getBufferedAmount() > BUFFERED_MAX) return true
  return false
}

function streamsFull(): boolean {
  for (const controller of streams) if ((controller.desiredSize ?? 0) < -BUFFERED_MAX) return true
  return false
}

process.stdout.write(`${server.port}\n`)
