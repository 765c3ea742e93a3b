import { LRUCache } from 'lru-cache'
import type { Sql } from '../../stores/postgres/connect.ts'
import type { HostedAgentRow } from '../run/plan.ts'
import { findAgent } from './agent.ts'

const AGENTS_MAX = 1_000
const LENGTH_MAX = 16 << 20
/** An estimate of the rest of a row, without the texts that `lengthOf` counts. */
const ROW_LENGTH = 1_000

/**
 * Agents as they were when this process last read them, so that an invocation saves a statement: the one that creates
 * its run checks that the agent still has this version.
 */
export class KnownAgents {
  private readonly rows = new LRUCache<string, HostedAgentRow>({
    max: AGENTS_MAX,
    maxSize: LENGTH_MAX,
    sizeCalculation: lengthOf,
  })

  constructor(private readonly sql: Sql) {}

  /** The agent as it was; undefined when it has to be read. */
  get(workspaceId: string, agentId: string): HostedAgentRow | undefined {
    return this.rows.get(keyOf(workspaceId, agentId))
  }

  /** The agent as it is now; null when it does not exist or is archived. */
  async read(workspaceId: string, agentId: string): Promise<HostedAgentRow | null> {
    const row = await findAgent(this.sql, workspaceId, agentId)
    if (row === null) this.rows.delete(keyOf(workspaceId, agentId))
    else this.rows.set(keyOf(workspaceId, agentId), row)
    return row
  }
}

function keyOf(workspaceId: string, agentId: string): string {
  return `${workspaceId} ${agentId}`
}

/** In UTF-16 units. External agents have none of these texts. */
function lengthOf({ prompt, metadata, ...row }: Partial<HostedAgentRow>): number {
  const schemas = textLength(row.output_schema) + textLength(row.input_schema)
  return (prompt?.length ?? 0) + textLength(row.tools) + schemas + textLength(metadata) + ROW_LENGTH
}

function textLength(json: { readonly text: string } | null | undefined): number {
  return json?.text.length ?? 0
}
