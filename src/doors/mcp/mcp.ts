import type { Activity } from '../../activity/activity.ts'
import type { PriceTable } from '../../base/conventions/prices.ts'
import type { Connections } from '../../feeds/live/connections.ts'
import type { Hosted } from '../../hosted/hosted.ts'
import type { Analytics } from '../../sql/analytics/analytics.ts'
import { queryCatalogue } from '../../sql/analytics/catalogue.ts'
import { unavailableOf } from '../../stores/postgres/connect.ts'
import type { FeatureContext } from '../../tenants/feature.ts'
import { agentFeature } from './agents/agents.ts'
import { OpenCalls } from './open-calls.ts'
import { examplePrompts } from './prompts.ts'
import type { McpFeature } from './provider.ts'
import { guideResources, runResources, schemaResources } from './resources.ts'
import { mcpRoutes } from './routes.ts'
import { McpServer } from './server.ts'
import { pauseTools } from './tools/pauses.ts'
import { runTools } from './tools/runs.ts'
import { sqlTools } from './tools/sql.ts'
import { ownTools } from './tools/tool.ts'

interface McpDeps {
  readonly analytics: Analytics
  readonly modelPrices: PriceTable
  readonly activity: Pick<Activity, 'runs' | 'search'>
  readonly hosted: Hosted
  readonly connections: Connections
  /** How long a call of an agent may be open. */
  readonly waitMs: number
  /** Of the service. */
  readonly version: string
}

/** The MCP server (docs/mcp.md) and what it offers: SQL, runs, what waits for people, and the examples. */
export function createMcp(context: FeatureContext, deps: McpDeps) {
  const { guards, reader, limiter, slice, limits, publicUrl, ring, log } = context
  const { connections, version } = deps
  const features = mcpFeatures(context, deps)
  const routes = mcpRoutes({
    guards,
    reader,
    features,
    publicUrl,
    slice,
    server: new McpServer({ version, log, features, unavailableOf }),
    openCalls: new OpenCalls({ ring, connections }),
    maxDepth: limits.json_depth,
    takeBudget: (caller, budget) => limiter.take(caller.keyId, budget, 1),
  })
  return { routes }
}

function mcpFeatures({ sql, limits }: FeatureContext, deps: McpDeps): readonly McpFeature[] {
  const { analytics, modelPrices, hosted, waitMs } = deps
  const { runs, search } = deps.activity
  const catalogue = queryCatalogue(analytics.caps, modelPrices)
  const tools = [...sqlTools(analytics, catalogue), ...runTools({ runs, search }), ...pauseTools(hosted)]
  return [
    {
      tools: ownTools(tools),
      prompts: examplePrompts(),
    },
    { resources: schemaResources(catalogue) },
    { resources: runResources(runs) },
    { resources: guideResources() },
    agentFeature({ sql, limits, waitMs, hosted, reservedNames: new Set(tools.map(({ name }) => name)) }),
  ]
}
