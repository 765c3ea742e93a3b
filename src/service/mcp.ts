import packageJson from '../../package.json' with { type: 'json' }
import type { RunSearch } from '../activity/runs/search/run-search.ts'
import type { RunStore } from '../activity/runs/store.ts'
import type { Budget, RateLimiter } from '../base/http/rate-limit.ts'
import type { SharedSlice } from '../base/http/shared-slice.ts'
import { mcpFeatures } from '../doors/mcp/mcp.ts'
import { OpenCalls } from '../doors/mcp/open-calls.ts'
import { McpServer } from '../doors/mcp/server.ts'
import type { Connections } from '../feeds/live/connections.ts'
import type { Hosted } from '../hosted/hosted.ts'
import type { Analytics } from '../sql/analytics/analytics.ts'
import { unavailableOf } from '../stores/postgres/connect.ts'
import type { KeyRing } from '../tenants/keys/key-ring.ts'
import type { Caller } from '../tenants/keys/schema.ts'
import type { ServiceContext } from './pipeline/context.ts'

/** The components that the MCP server offers to its clients, and those that it shares with other routes. */
interface McpComponents {
  readonly context: ServiceContext
  readonly ring: KeyRing
  readonly connections: Connections
  readonly analytics: Analytics
  readonly hosted: Hosted
  readonly runs: RunStore
  readonly search: RunSearch
  readonly limiter: RateLimiter
  readonly slice: SharedSlice
}

/** What the routes of the MCP server need. */
export function mcpDeps({
  context,
  ring,
  connections,
  analytics,
  hosted,
  runs,
  search,
  limiter,
  slice,
}: McpComponents) {
  const { config, log, sql } = context
  const { limits, publicUrl } = config
  const { modelPrices, waitMs } = config.hosted
  const features = mcpFeatures({ analytics, modelPrices, hosted, sql, limits, waitMs, runs, search })
  return {
    features,
    server: new McpServer({ version: packageJson.version, log, features, unavailableOf }),
    openCalls: new OpenCalls({ ring, connections }),
    maxDepth: limits.json_depth,
    takeBudget: (caller: Caller, budget: Budget) => limiter.take(caller.keyId, budget, 1),
    publicUrl,
    slice,
  }
}
