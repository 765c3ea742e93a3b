/*
 * The agent as a Restate workflow, as its documentation shows: a journalled side effect for each call of the model and of
 * a tool, and a durable promise for the approval. Restate itself retries interrupted workflows.
 */
import * as restate from '@restatedev/restate-sdk'
import { askModel, callTool, needsApproval, opening } from './steps.mjs'

const agent = restate.workflow({
  name: 'agent',
  handlers: {
    async run(ctx) {
      const messages = opening(ctx.key)
      for (;;) {
        const answer = await ctx.run('model', () => askModel(messages))
        messages.push(answer)
        if (!answer.tool_calls) return answer.content
        for (const call of answer.tool_calls) {
          if (needsApproval(call)) {
            await ctx.promise('waiting').resolve(true)
            await ctx.promise('approved')
          }
          messages.push(await ctx.run(call.function.name, () => callTool(ctx.key, call)))
        }
      }
    },
    /** Answers when the run waits. */
    waiting: (ctx) => ctx.promise('waiting').get(),
    isWaiting: async (ctx) => (await ctx.promise('waiting').peek()) ?? false,
    approve: (ctx) => ctx.promise('approved').resolve(true),
  },
})

restate.serve({ services: [agent], port: Number(process.env.PORT) })
