/*
 * The peer: a server of Mastra's, run by Node from the folder that its packages were installed into (see peer.ts). As its
 * documentation has it: an agent with instructions and a model behind a compatible address, and the routes that its
 * server adapter gives to each agent. It has no memory, storage, tracing or log: it does nothing but ask the model.
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
