/*
 * The graph behind the server of `routes.mjs`, with checkpoints in Postgres: each step is stored before the next begins
 * (`durability: 'sync'`). The library continues an interrupted thread when it is invoked again.
 */
import { Command } from '@langchain/langgraph'
import { PostgresSaver } from '@langchain/langgraph-checkpoint-postgres'
import { builder } from './langgraph.mjs'
import { serveRuns } from './routes.mjs'

const checkpointer = PostgresSaver.fromConnString(process.env.DATABASE_URL)
await checkpointer.setup()
const graph = builder.compile({ checkpointer })
const configOf = (run) => ({ configurable: { thread_id: run }, durability: 'sync' })

async function stateOf(run) {
  const { tasks, values } = await graph.getState(configOf(run))
  // Not `next`: that leaves out a node whose result is stored although the step after it has not begun.
  if (tasks.length === 0) return values.order === undefined ? 'absent' : 'ended'
  return tasks.some(({ interrupts }) => interrupts.length > 0) ? 'waiting' : 'running'
}

serveRuns({
  async invoke(run) {
    await graph.invoke({ order: run }, configOf(run))
  },
  async approve(run) {
    await graph.invoke(new Command({ resume: true }), configOf(run))
  },
  async proceed(run) {
    await graph.invoke(null, configOf(run))
  },
  state: stateOf,
})
