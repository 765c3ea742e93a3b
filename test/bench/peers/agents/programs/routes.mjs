/*
 * The HTTP server of a program whose system has none: POST /runs/:id starts a run and answers when it waits, POST
 * /runs/:id/approve answers when it has ended, POST /runs/:id/proceed continues one that nobody executes, and GET
 * /runs/:id says where it is.
 */
import { createServer } from 'node:http'

export function serveRuns({ invoke, approve, proceed, state }) {
  const server = createServer(async (request, response) => {
    const [, , run, action] = request.url.split('/')
    const handle = request.method === 'GET' ? state : { approve, proceed, [undefined]: invoke }[action]
    try {
      const result = await handle(run)
      response.end(JSON.stringify(result ?? null))
    } catch (error) {
      response.statusCode = 500
      response.end(String(error?.stack ?? error))
    }
  })
  server.listen(Number(process.env.PORT), '127.0.0.1')
}
