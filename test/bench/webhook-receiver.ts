/** A receiver that answers at once. `GET /` answers how many messages it has had. Prints its port. */
let received = 0
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  idleTimeout: 0,
  async fetch(request) {
    if (request.method === 'GET') return new Response(String(received))
    await request.arrayBuffer()
    received++
    return new Response(null, { status: 204 })
  },
})
process.stdout.write(String(server.port))

export {}
