import { Bytes } from '../../stores/clickhouse/bytes.ts'
import { type ColumnarClient, ColumnarUnavailable } from '../../stores/clickhouse/client.ts'
import { blockHead } from '../../stores/clickhouse/native.ts'
import { type Columns, recordColumns } from '../../stores/journal/blocks/record-block.ts'
import { type Fragment, inTransaction, type Sql, type TransactionSql } from '../../stores/postgres/connect.ts'
import { personName } from '../../tenants/people/names.ts'

/** The tables of SQL that read the copies. */
export const AGENT_TABLES: ReadonlySet<string> = new Set(['agents', 'agent_versions'])

const ROWS_PER_COPY = 500
/** A copy ends with the version that exceeds it. */
const BYTES_PER_COPY = 4 << 20
/** Only these may be long. */
const LONG_COLUMNS = ['description', 'prompt', 'tools', 'output_schema', 'input_schema', 'metadata']
/** Less than Postgres lets a transaction idle: until the copy has ended, its lock keeps the workspace from being erased. */
const COPY_TIMEOUT_MS = 8_000
const COLUMN_BYTES = 4 * 1024

/** A row of ClickHouse's `agent_versions`. Times are Unix milliseconds, free-form members JSON text. */
interface VersionRow {
  readonly workspace_id: string
  readonly agent_id: string
  readonly version: number
  readonly name: string
  readonly description: string | null
  readonly runtime_type: string
  readonly status: string
  readonly model: string | null
  readonly prompt: string | null
  readonly tools: string | null
  readonly output_schema: string | null
  readonly input_schema: string | null
  readonly expose: readonly string[]
  readonly allow_input_requests: boolean | null
  readonly temperature: number | null
  readonly max_output_tokens: number | null
  readonly max_steps: number | null
  readonly timeout_seconds: number | null
  readonly budget_usd: number | null
  readonly stale_after_seconds: number | null
  readonly metadata: string
  readonly created_by: string | null
  readonly created_by_person: string | null
  readonly changes: readonly string[]
  readonly restored_from: number | null
  readonly agent_created_at: number
  readonly version_created_at: number
}

const COLUMNS: Columns<VersionRow> = [
  ['workspace_id', 'UUID'],
  ['agent_id', 'UUID'],
  ['version', 'Int64'],
  ['name', 'String'],
  ['description', 'String', 'null'],
  ['runtime_type', 'String'],
  ['status', 'String'],
  ['model', 'String', 'null'],
  ['prompt', 'String', 'null'],
  ['tools', 'String', 'null'],
  ['output_schema', 'String', 'null'],
  ['input_schema', 'String', 'null'],
  ['expose', 'Array(String)'],
  ['allow_input_requests', 'Bool', 'null'],
  ['temperature', 'Float64', 'null'],
  ['max_output_tokens', 'Int64', 'null'],
  ['max_steps', 'Int64', 'null'],
  ['timeout_seconds', 'Int64', 'null'],
  ['budget_usd', 'Float64', 'null'],
  ['stale_after_seconds', 'Int64', 'null'],
  ['metadata', 'String'],
  ['created_by', 'UUID', 'null'],
  ['created_by_person', 'String', 'null'],
  ['changes', 'Array(String)'],
  ['restored_from', 'Int64', 'null'],
  ['agent_created_at', "DateTime64(3, 'UTC')"],
  ['version_created_at', "DateTime64(3, 'UTC')"],
]

/** The newest version of an agent that ClickHouse has. */
interface Copied {
  readonly agent_id: string
  readonly version: number
  readonly version_created_at: number
}

interface AgentVersionCopiesDeps {
  readonly sql: Sql
  readonly columnar: Pick<ColumnarClient, 'query' | 'insertNative'>
  /** Default {@link COPY_TIMEOUT_MS}. */
  readonly copyTimeoutMs?: number
}

/**
 * Copies the versions of agents from Postgres to ClickHouse, for SQL. They change so rarely that they do not go through the
 * journal: when a query names them, two short reads compare both stores. So a query sees every edit made before it.
 */
export class AgentVersionCopies {
  /** Copies under way, by workspace: queries at the same time wait for one instead of each copying everything. */
  private readonly copies = new Map<string, Promise<void>>()

  constructor(private readonly deps: AgentVersionCopiesDeps) {}

  /** Copies the versions that ClickHouse lacks. @throws errors of the stores; the reason of `signal` */
  async update(workspaceId: string, signal: AbortSignal): Promise<void> {
    for (;;) {
      const known = await this.outdated(workspaceId, signal)
      if (known === null) return
      const running = this.copies.get(workspaceId)
      if (running === undefined) return await this.copyAll(workspaceId, known, signal)
      await settled(running, signal)
    }
  }

  private async copyAll(workspaceId: string, known: Map<string, Copied>, signal: AbortSignal): Promise<void> {
    const copy = async () => {
      do signal.throwIfAborted()
      while (await this.copySome(workspaceId, known))
    }
    const copying = copy().finally(() => this.copies.delete(workspaceId))
    this.copies.set(workspaceId, copying)
    await copying
  }

  /** What ClickHouse has of each agent, by id; null if it lacks nothing. */
  private async outdated(workspaceId: string, signal: AbortSignal): Promise<Map<string, Copied> | null> {
    const { sql, columnar } = this.deps
    const [[newest], copied] = await Promise.all([
      // Each edit raises one version by one, so the sum of all versions tells whether there was any.
      sql<[{ versions: number; at: number | null }]>`
        select coalesce(sum(version), 0)::bigint as versions, (date_part('epoch', max(updated_at)) * 1000)::bigint as at
        from agents where workspace_id = ${workspaceId}`,
      columnar.query<Copied>(
        `select agent_id, max(version) as version,
           toUnixTimestamp64Milli(argMax(v.version_created_at, v.version)) as version_created_at
         from agent_versions v where workspace_id = {workspace:UUID} group by agent_id`,
        { params: { workspace: workspaceId }, signal },
      ),
    ])
    const versions = copied.reduce((sum, { version }) => sum + version, 0)
    const at = copied.reduce<number | null>((latest, row) => Math.max(latest ?? 0, row.version_created_at), null)
    if (versions === newest.versions && at === newest.at) return null
    return new Map(copied.map((row) => [row.agent_id, row]))
  }

  /**
   * Copies one block. Locks the workspace, because an erasure meanwhile would miss the copies.
   * @returns whether there may be more to copy
   */
  private async copySome(workspaceId: string, known: Map<string, Copied>): Promise<boolean> {
    const { sql, columnar, copyTimeoutMs = COPY_TIMEOUT_MS } = this.deps
    return inTransaction(sql, async (tx) => {
      const [workspace] = await tx<{ is_erasing: boolean }[]>`
        select is_erasing from workspaces where workspace_id = ${workspaceId} for share`
      if (workspace?.is_erasing !== false) return false
      const rows = await oldestUncopied(tx, workspaceId, [...known.values()])
      if (rows.length === 0) return false
      const buffers = COLUMNS.map(() => new Bytes(COLUMN_BYTES))
      const block = [blockHead(COLUMNS.length, rows.length), ...recordColumns(COLUMNS, rows, buffers)]
      // Not ended with the caller: ClickHouse would go on, without the lock.
      const timeout = AbortSignal.timeout(copyTimeoutMs)
      await columnar.insertNative('agent_versions', block, `agents-${crypto.randomUUID()}`, timeout).catch((error) => {
        throw timeout.aborted
          ? new ColumnarUnavailable('ClickHouse did not take a copy in time', { cause: error })
          : error
      })
      for (const row of rows) known.set(row.agent_id, row)
      return true
    })
  }
}

/** Waits until the promise is fulfilled or rejected. @throws the reason of `signal` */
async function settled(running: Promise<void>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const abort = () => reject(signal.reason)
  signal.addEventListener('abort', abort)
  try {
    await Promise.race([running.catch(() => undefined), aborted])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

/**
 * The oldest versions that are not copied, in the order in which they must be copied: a newer one says that all before are.
 * They are measured one after the other: Postgres has to decompress a long value to know how long it is, and one that it has
 * compressed may be a hundred times as long.
 */
function oldestUncopied(tx: TransactionSql, workspaceId: string, known: readonly Copied[]): Promise<VersionRow[]> {
  const columns = tx`
    v.workspace_id, v.agent_id, v.version, v.name, v.description, v.runtime_type, v.status, v.model, v.prompt, v.tools::text as tools,
    v.output_schema::text as output_schema, v.input_schema::text as input_schema, coalesce(v.expose, '{}') as expose,
    v.allow_input_requests, v.temperature, v.max_output_tokens, v.max_steps, v.timeout_seconds, v.budget_usd,
    v.stale_after_seconds, v.metadata::text as metadata, v.version_created_by as created_by, ${personName(tx, 'v.version_created_by', 'v.workspace_id')} as created_by_person,
    v.version_changes as changes, v.version_restored_from as restored_from,
    (date_part('epoch', v.created_at) * 1000)::bigint as agent_created_at,
    (date_part('epoch', v.updated_at) * 1000)::bigint as version_created_at`
  const versions = (names: Fragment, condition: Fragment) => tx`
    select ${names} from agents v where v.workspace_id = ${workspaceId} ${condition}
    union all
    select ${names} from agent_versions v where v.workspace_id = ${workspaceId} ${condition}`
  const bytes = tx.unsafe(LONG_COLUMNS.map((name) => `coalesce(octet_length(v.${name}::text), 0)`).join(' + '))
  return tx<VersionRow[]>`
    with recursive known as (
      select * from unnest(
        ${known.map((row) => row.agent_id)}::uuid[], ${known.map((row) => row.version)}::bigint[],
        ${known.map((row) => row.version_created_at)}::bigint[]
      ) as k (agent_id, version, at)
    ), due as materialized (
      select v.agent_id, v.version, row_number() over (order by v.agent_id, v.version) as number
      from (
        ${versions(tx`v.agent_id, v.version, date_part('epoch', v.updated_at) * 1000 as at`, tx``)}
      ) v left join known k on k.agent_id = v.agent_id
      where v.version > coalesce(k.version, 0) or (v.version = k.version and v.at::bigint <> k.at)
      order by v.agent_id, v.version limit ${ROWS_PER_COPY}
    ), chosen (number, bytes) as (
      select 0::bigint, 0::bigint
      union all
      select d.number, c.bytes + measured.bytes from chosen c join due d on d.number = c.number + 1 cross join lateral (
        ${versions(tx`${bytes} as bytes`, tx`and v.agent_id = d.agent_id and v.version = d.version`)}
      ) measured
      where c.bytes < ${BYTES_PER_COPY}
    )
    select v.* from chosen c join due d on d.number = c.number cross join lateral (
      ${versions(columns, tx`and v.agent_id = d.agent_id and v.version = d.version`)}
    ) v order by v.agent_id, v.version`
}
