import { toolResult } from '../results.ts'
import type { TaskRow } from './task-store.ts'

/** The result of a call whose run has ended. It names the run, for those who want to know what it did. */
export function endedResult({ runId, status, output, errorMessage, isStructured }: TaskRow): object {
  const _meta = { run_id: runId }
  if (status !== 'completed') {
    const reason = errorMessage === null ? '' : `: ${errorMessage}`
    return { content: [{ type: 'text', text: `The run ended as ${status}${reason}` }], isError: true, _meta }
  }
  if (isStructured) return { ...toolResult(output!), _meta }
  const { text } = output!.parse() as { text: string }
  return { content: [{ type: 'text', text }], _meta }
}

/** The result of a call that is answered although its run goes on. */
export function unfinishedResult(runId: string, why: string): object {
  const text = `${why} Run ${runId} goes on: read it with get_run.`
  return { content: [{ type: 'text', text }], isError: true, _meta: { run_id: runId } }
}
