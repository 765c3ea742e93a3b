/*
 * The peer: a Mastra server, run by Node from the directory of its packages (see peer.ts). As in its documentation: an
 * agent with instructions and a model at a compatible URL, and the routes that its server adapter creates for each
 * agent. It has no memory, storage, tracing or log: it only calls the model.
 */
import { serve } from '@hono/node-server'
import { Agent } from '@mastra/core/agent'
import { Mastra } from '@mastra/core/mastra'
import { MastraServer } from '@mastra/hono'
import { Hono } from 'hono'

const [url, id, instructions] = process.argv.slice(2)
const model = { id: 'bench/instant', url, apiKey: 'none' }
const agent = new Agent({ id, name: id, instructions, model })
const mastra = new Mastra({ agents: { [id]: agent }, logger: false })
const app = new Hono()
await new MastraServer({ app, mastra }).init()
serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }) => process.stdout.write(`${port}\n`))
