/*
 * The agent as a Mastra workflow behind Mastra's server, as its documentation shows: a step for each call of the model and
 * of a tool, suspension for the approval, and storage in LibSQL. Interrupted runs are restarted at boot.
 */
import { serve } from '@hono/node-server'
import { Mastra } from '@mastra/core/mastra'
import { createStep, createWorkflow } from '@mastra/core/workflows'
import { MastraServer } from '@mastra/hono'
import { LibSQLStore } from '@mastra/libsql'
import { Hono } from 'hono'
import { z } from 'zod'
import { askModel, callTool, opening } from './steps.mjs'

const schema = z.object({ order: z.string(), messages: z.array(z.any()).optional() })

const ask = (id) =>
  createStep({
    id,
    inputSchema: schema,
    outputSchema: schema,
    execute: async ({ inputData: { order, messages = opening(order) } }) => ({
      order,
      messages: [...messages, await askModel(messages)],
    }),
  })
const call = (id) =>
  createStep({
    id,
    inputSchema: schema,
    outputSchema: schema,
    execute: async ({ inputData: { order, messages } }) => {
      const results = await Promise.all(messages.at(-1).tool_calls.map((each) => callTool(order, each)))
      return { order, messages: [...messages, ...results] }
    },
  })
const approval = createStep({
  id: 'approval',
  inputSchema: schema,
  outputSchema: schema,
  resumeSchema: z.object({ approved: z.boolean() }),
  suspendSchema: z.object({}),
  execute: async ({ inputData, resumeData, suspend }) => (resumeData?.approved ? inputData : suspend({})),
})

const workflow = createWorkflow({ id: 'agent', inputSchema: schema, outputSchema: schema })
  .then(ask('plan'))
  .then(call('charge'))
  .then(ask('check'))
  .then(approval)
  .then(call('ship'))
  .then(ask('answer'))
  .commit()

const storage = new LibSQLStore({ id: 'peer', url: 'file:./mastra.db' })
const mastra = new Mastra({ workflows: { agent: workflow }, storage, logger: false })
await storage.init()
await mastra.restartAllActiveWorkflowRuns()
const app = new Hono()
await new MastraServer({ app, mastra }).init()
serve({ fetch: app.fetch, hostname: '127.0.0.1', port: Number(process.env.PORT) })
