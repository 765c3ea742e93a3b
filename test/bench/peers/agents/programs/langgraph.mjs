/*
 * The agent as a graph of LangGraph, as its documentation shows: a node for the model, one for the tools, and an interrupt
 * before those that a person must approve.
 */
import { Annotation, END, interrupt, START, StateGraph } from '@langchain/langgraph'
import { askModel, callTool, needsApproval, opening } from './steps.mjs'

const State = Annotation.Root({
  order: Annotation(),
  messages: Annotation({ reducer: (all, more) => all.concat(more), default: () => [] }),
})

const lastCalls = ({ messages }) => messages.at(-1)?.tool_calls ?? []

/** Not compiled: the programs that use it add the storage. */
export const builder = new StateGraph(State)
  .addNode('open', ({ order }) => ({ messages: opening(order) }))
  .addNode('model', async ({ messages }) => ({ messages: [await askModel(messages)] }))
  .addNode('approval', () => {
    interrupt('Ship the order?')
    return {}
  })
  .addNode('tools', async (state) => ({
    messages: await Promise.all(lastCalls(state).map((call) => callTool(state.order, call))),
  }))
  .addEdge(START, 'open')
  .addEdge('open', 'model')
  .addConditionalEdges('model', (state) => {
    const calls = lastCalls(state)
    if (calls.length === 0) return END
    return calls.some(needsApproval) ? 'approval' : 'tools'
  })
  .addEdge('approval', 'tools')
  .addEdge('tools', 'model')

/** For LangGraph's own server, which brings its storage. */
export const graph = builder.compile()
