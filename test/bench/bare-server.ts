/**
 * Baseline for event calls: the least work for a server that parses its input. Prints its port.
 */
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    const body = (await request.json()) as { events: unknown[] }
    return Response.json({ data: { accepted: body.events.length }, error: null })
  },
})
process.stdout.write(`${server.port}\n`)
