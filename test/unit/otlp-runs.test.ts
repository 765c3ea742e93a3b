import { expect, test } from 'bun:test'
import type { RunRef } from '../../src/base/ids.ts'
import { RawJson } from '../../src/base/raw-json.ts'
import type { RunReport, RunUpserted } from '../../src/doors/traces/run-upserts.ts'
import { createTraceRuns } from '../../src/doors/traces/runs.ts'

const CALLER = { workspaceId: 'w', agentId: null } as never
const RUN = { runId: 'r', externalRunId: 't', parentRunId: null }
const NOTHING = { startedAt: 1, externalUserId: null, sessionId: null, tags: [], metadata: new RawJson('{}') }

test('an export that finds its run started by a faster one, for another agent, still adds what it says', async () => {
  const { deps, reports } = storeOfRuns()
  const { report } = createTraceRuns(deps as never)
  const input = new RawJson('{"text":"hi"}')
  // The log records of a trace name its service, the spans their agent.
  await report(CALLER, RUN, { ...NOTHING, agentName: 'service', input: null })
  const found = await report(CALLER, RUN, { ...NOTHING, agentName: 'planner', input })
  expect(found.agentId).toBe('service')
  expect(reports.map(({ agentId, input }) => [agentId, input])).toEqual([
    ['service', null],
    ['planner', input],
    ['service', input],
  ])
})

/** The first report decides the agent of the run. Both exports ask for the run before it exists. */
function storeOfRuns() {
  const reports: RunReport[] = []
  const directory = {
    asked: 0,
    async find(workspaceId: string, runId: string): Promise<RunRef | null> {
      const isTooEarly = ++directory.asked <= 2
      return isTooEarly ? null : { workspaceId, runId, agentId: reports[0]!.agentId, runtimeType: 'external' }
    },
    starting: () => () => {},
  }
  const upserts = {
    async submit(report: RunReport): Promise<RunUpserted> {
      reports.push(report)
      if (reports.length === 1) return 'created'
      return report.agentId === reports[0]!.agentId ? 'changed' : 'unchanged'
    },
  }
  const agents = { find: async (_: string, name: string) => name }
  return { reports, deps: { directory, upserts, agents, clock: { now: () => 2 }, onChange() {} } }
}
