import { runKey } from '../../base/ids.ts'
import { uuidWords } from '../../clickhouse/bytes.ts'
import type { RunRows } from '../journal.ts'

const RUNS_REMEMBERED = 10_000

const wordsOfRun = new Map<string, Uint32Array>()

/** The ids of a run as words (see {@link uuidWords}): workspace, agent, run. Cached for active runs. */
export function runWords({ workspaceId, agentId, runId }: Omit<RunRows, 'rows'>): Uint32Array {
  const key = runKey(workspaceId, runId)
  let words = wordsOfRun.get(key)
  if (words === undefined) {
    if (wordsOfRun.size >= RUNS_REMEMBERED) wordsOfRun.clear()
    words = new Uint32Array(12)
    words.set(uuidWords(workspaceId), 0)
    words.set(uuidWords(agentId), 4)
    words.set(uuidWords(runId), 8)
    wordsOfRun.set(key, words)
  }
  return words
}
