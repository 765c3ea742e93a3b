/*
 * The agent as a DBOS workflow, as its documentation shows: a checkpointed step for each call of the model and of a tool,
 * and a durable message for the approval. DBOS recovers interrupted workflows when it is launched.
 */
import { DBOS } from '@dbos-inc/dbos-sdk'
import { serveRuns } from './routes.mjs'
import { askModel, callTool, needsApproval, opening } from './steps.mjs'

const APPROVAL_SECONDS = 3600
const STATES = { SUCCESS: 'ended', ERROR: 'failed', MAX_RECOVERY_ATTEMPTS_EXCEEDED: 'failed', CANCELLED: 'failed' }

/**
 * Callers in this process are told directly that their run waits or has ended. The ways for callers in other processes look
 * for it at intervals, once a second for a result, which would hide what the steps cost.
 */
const callers = new Map()
function callerOf(run) {
  if (!callers.has(run)) callers.set(run, Promise.withResolvers())
  return callers.get(run)
}

/** The handles of the runs that this process has started. */
const handles = new Map()

async function runAgent(order) {
  const messages = opening(order)
  for (;;) {
    const answer = await DBOS.runStep(() => askModel(messages), { name: 'model' })
    messages.push(answer)
    if (!answer.tool_calls) return answer.content
    for (const call of answer.tool_calls) {
      if (needsApproval(call)) {
        await DBOS.setEvent('waiting', true)
        callerOf(DBOS.workflowID).resolve()
        await DBOS.recv('approval', APPROVAL_SECONDS)
      }
      messages.push(await DBOS.runStep(() => callTool(DBOS.workflowID, call), { name: call.function.name }))
    }
  }
}

const agent = DBOS.registerWorkflow(runAgent, { name: 'agent' })
DBOS.setConfig({ name: 'peer', systemDatabaseUrl: process.env.DATABASE_URL, runAdminServer: false, logLevel: 'error' })
await DBOS.launch()

serveRuns({
  async invoke(run) {
    handles.set(run, await DBOS.startWorkflow(agent, { workflowID: run })(run))
    await callerOf(run).promise
  },
  async approve(run) {
    // The key makes a repeated approval one.
    await DBOS.send(run, true, 'approval', run)
    await (handles.get(run) ?? DBOS.retrieveWorkflow(run)).getResult()
    handles.delete(run)
    callers.delete(run)
  },
  async state(run) {
    const status = await DBOS.getWorkflowStatus(run)
    if (status === null) return 'absent'
    if (status.status in STATES) return STATES[status.status]
    return (await DBOS.getEvent(run, 'waiting', 0)) ? 'waiting' : 'running'
  },
})
