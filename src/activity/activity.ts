import { Elysia } from 'elysia'
import type { FeatureContext } from '../tenants/feature.ts'
import { agentRoutes } from './agents/routes.ts'
import { AgentStore } from './agents/store.ts'
import { agentVersionRoutes } from './agents/version-routes.ts'
import { AgentVersions } from './agents/versions.ts'
import { createEventIngest } from './events/ingest.ts'
import { eventRoutes } from './events/routes.ts'
import { ConversationReader } from './runs/conversation/reader.ts'
import type { RunDirectory } from './runs/directory.ts'
import { EventReader } from './runs/events.ts'
import { runRoutes } from './runs/routes.ts'
import { startIndexing } from './runs/search/indexing.ts'
import { RunSearch } from './runs/search/run-search.ts'
import { startStaleRuns } from './runs/stale.ts'
import { RunStore, type RunStoreDeps } from './runs/store.ts'
import { runViewRoutes } from './runs/view-routes.ts'
import { RunViews } from './runs/view-store.ts'
import { ScoreReader } from './scores/reader.ts'
import { scoreRoutes } from './scores/routes.ts'
import { Scores } from './scores/scores.ts'
import { SessionReader } from './sessions/reader.ts'
import { sessionRoutes } from './sessions/routes.ts'
import { UserReader } from './sessions/users.ts'
import { taskRoutes } from './tasks/routes.ts'
import { TaskStore } from './tasks/store.ts'
import { TelemetryTasks } from './tasks/telemetry-tasks.ts'

interface ActivityDeps {
  readonly directory: RunDirectory
  readonly cancelHosted: RunStoreDeps['cancelHosted']
}

export type Activity = ReturnType<typeof startActivity>

/** What agents report: runs, tasks, events and scores; and the agents, sessions and users that runs name. */
export function startActivity(context: FeatureContext, { directory, cancelHosted }: ActivityDeps) {
  const { sql, columnar, partitions, clock, limits, ring, guards, slice, metrics, onChange, takeBudget } = context
  const runs = new RunStore({ sql, clock, limits, directory, onChange, cancelHosted })
  const search = new RunSearch({ columnar, partitions, runs, slice })
  const conversations = new ConversationReader({ columnar, partitions, runs, slice })
  const telemetry = new TelemetryTasks({ columnar, partitions })
  const tasks = new TaskStore({ sql, clock, limits, directory, telemetry, onChange })
  const agents = new AgentStore({ sql, ring, clock })
  const taking = { runs: directory, partitions, limits, takeBudget }
  const ingest = createEventIngest({ ...taking, onAccepted: metrics.eventsTaken })
  const scores = new Scores({ ...taking, slice, onAccepted: metrics.scoresTaken })
  const scoreReader = new ScoreReader({ columnar, partitions, runs: directory })
  const stale = startStaleRuns(context)
  context.teardown.add('stale runs', () => stale.stop())
  context.teardown.add('search index', startIndexing(context))
  const reported = new Elysia()
    .use(eventRoutes({ ...context, ingest }))
    .use(runRoutes({ guards, runs, events: new EventReader({ columnar, partitions }), conversations, search }))
    .use(runViewRoutes({ guards, views: new RunViews({ sql, clock }) }))
    .use(taskRoutes({ guards, tasks }))
    .use(scoreRoutes({ ...context, scores, scoreReader }))
  const named = new Elysia()
    .use(agentRoutes({ guards, agents }))
    .use(agentVersionRoutes({ guards, versions: new AgentVersions({ sql, clock }) }))
    .use(sessionRoutes({ guards, sessions: new SessionReader(sql), users: new UserReader(sql) }))
  return { routes: new Elysia().use(reported).use(named), directory, runs, search, scores, agents, telemetry }
}
