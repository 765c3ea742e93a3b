import type { RunSearch } from '../../activity/runs/search/run-search.ts'
import type { RunStore } from '../../activity/runs/store.ts'
import type { PriceTable } from '../../base/conventions/prices.ts'
import type { Limits } from '../../base/limits.ts'
import type { Hosted } from '../../hosted/hosted.ts'
import type { Analytics } from '../../sql/analytics/analytics.ts'
import { queryCatalogue } from '../../sql/analytics/catalogue.ts'
import type { Sql } from '../../stores/postgres/connect.ts'
import { agentFeature } from './agents/agents.ts'
import { examplePrompts } from './prompts.ts'
import type { McpFeature } from './provider.ts'
import { guideResources, runResources, schemaResources } from './resources.ts'
import { pauseTools } from './tools/pauses.ts'
import { runTools } from './tools/runs.ts'
import { sqlTools } from './tools/sql.ts'
import { ownTools } from './tools/tool.ts'

interface McpFeaturesDeps {
  readonly analytics: Analytics
  readonly modelPrices: PriceTable
  readonly runs: RunStore
  readonly search: RunSearch
  readonly hosted: Hosted
  readonly sql: Sql
  readonly limits: Limits
  /** How long a call of an agent may be open. */
  readonly waitMs: number
}

/** What the MCP server offers (docs/mcp.md): SQL, runs, what waits for people, and the examples. */
export function mcpFeatures({
  analytics,
  modelPrices,
  runs,
  search,
  hosted,
  ...deps
}: McpFeaturesDeps): readonly McpFeature[] {
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
    agentFeature({ ...deps, hosted, reservedNames: new Set(tools.map(({ name }) => name)) }),
  ]
}
