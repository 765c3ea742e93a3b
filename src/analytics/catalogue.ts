import { t } from 'elysia'
import { lookup } from '../base/lookup.ts'
import type { PriceTable } from '../conventions/prices.ts'
import { Count, Named } from '../http/schema.ts'
import { EXAMPLES } from './examples.ts'
import type { QueryCaps } from './query-caps.ts'
import { RunQuery } from './schema.ts'
import { TABLES } from './tables.ts'

/** The tables, columns and example queries, for people and for tools that write SQL (docs/specification.md#tables). */

const Column = t.Object({
  name: t.String({ description: 'The column.' }),
  type: t.String({ description: "As ClickHouse names it, such as `DateTime64(3, 'UTC')`." }),
  description: t.String({ description: 'What it contains.' }),
  nullable: t.Boolean({ description: 'Whether it can be null.' }),
})

const Caps = t.Object(
  {
    seconds: Count('Maximum run time of a query, in seconds.'),
    memory_bytes: Count('Maximum memory of a query, in bytes.'),
    rows: Count('Maximum rows of a JSON answer; `truncated` is true if there were more.'),
    result_bytes: Count('Maximum size of a result in the memory of the engine, in bytes.'),
    at_once: Count('Maximum number of concurrent queries of the workspace.'),
  },
  { description: 'Resource limits of a query.' },
)

const Usd = (what: string) => t.Number({ minimum: 0, description: `USD per million ${what} tokens.` })
const ModelPrices = t.Record(t.String(), t.Object({ input: Usd('input'), output: Usd('output') }), {
  description:
    'The prices of `MODEL_PRICES`, by model; a name that ends with `*` is a prefix. With the list prices, they are the cost of ' +
    'model calls that do not report one.',
})

export const QueryCatalogue = Named(
  'QueryCatalogue',
  t.Object({
    tables: t.Array(
      t.Object({
        name: t.String({ description: 'The table.' }),
        description: t.String({ description: 'What one row represents.' }),
        columns: t.Array(Column, { description: 'Its columns, in order.' }),
      }),
      { description: 'What a query can read.' },
    ),
    examples: t.Array(
      t.Object({
        title: t.String({ description: 'A short title.' }),
        description: t.String({ description: 'What the result shows.' }),
        query: t.String({ description: 'The query.' }),
        params: RunQuery.properties.params,
      }),
      { description: 'Queries that run unchanged.' },
    ),
    caps: Caps,
    model_prices: ModelPrices,
  }),
)
export type QueryCatalogue = typeof QueryCatalogue.static

const TABLE_DESCRIPTIONS = lookup<string>({
  events: 'Reported events, one per row. Events never change.',
  runs: 'The latest state of each run, one per row.',
  tasks: 'The latest state of each task, one per row.',
  gaps: 'Positions whose rows were lost when a store was set back to an earlier state; empty if nothing was lost.',
})

const BY_PATH =
  'Query it by path, as in payload.tokens.in. A dot in a key separates steps of the path: payload.gen_ai.usage.input_tokens ' +
  'finds both {"gen_ai.usage.input_tokens": 5} and {"gen_ai": {"usage": {"input_tokens": 5}}}; quote a step with other ' +
  'characters, as in payload.`x-id`. A value has the type it was sent with. ' +
  'Where a number is expected, it is read as Float64, or null if it is not a number: sum(payload.tokens.in), ' +
  'max(payload.ms), payload.ms / 1000, payload.ms > 250. Elsewhere give the type: max(payload.at::String); ' +
  "payload.id::Int64 for integers beyond 2^53. payload.name::String is '' if the path is missing, payload.a.:Int64 " +
  'is null if the value has another type. payload.^tool is the object at that ' +
  "path. The whole column is null if ClickHouse's JSON type cannot represent it."

const COLUMN_DESCRIPTIONS = lookup<Readonly<Record<string, string>>>({
  events: {
    seq: 'Position in the order of acceptance, as in the cursors of feeds.',
    event_id: "The caller's id of the event, unique in its run, or a ULID assigned by the service.",
    run_id: 'The run it was reported for.',
    agent_id: 'The agent of that run.',
    type: 'The name of the event, such as llm.call.',
    level: 'debug, info, warn or error.',
    payload: BY_PATH,
    occurred_at: 'When it happened, according to the caller.',
    received_at: 'When the service accepted it.',
  },
  runs: {
    run_id: 'The run.',
    agent_id: 'The agent it belongs to.',
    agent_name: 'The name of that agent when the run last changed.',
    status: 'queued, running, awaiting_approval, awaiting_input, completed, failed, cancelled or timed_out.',
    trigger_type: 'manual, scheduled, webhook or sdk.',
    external_run_id: "The caller's own identifier of the run.",
    parent_run_id: 'The run that started it.',
    session_id: 'The session it belongs to.',
    tags: 'In the order they were given; arrayJoin(tags) returns one row per tag, has(tags, …) looks one up.',
    input: 'The input of the run. Query it by path, like payload of events.',
    output: 'The output of the run. Query it by path, like payload of events.',
    error_message: 'Why it failed or was cancelled.',
    created_at: 'When the service created the run.',
    started_at: 'When it started running.',
    completed_at: 'When it ended, with any status.',
    duration_ms: 'From started_at to completed_at.',
    input_tokens: 'Input tokens of its model calls: of llm.call events, or as reported with its end.',
    output_tokens: 'Output tokens of the same calls.',
    cost_usd: 'Cost of the same calls.',
  },
  tasks: {
    task_id: "The caller's id of the task, unique in its run.",
    run_id: 'The run it is part of.',
    agent_id: 'The agent of that run.',
    name: 'The name of the task.',
    status: 'pending, running, completed, failed or skipped.',
    input: 'Query it by path, like payload of events.',
    output: 'Query it by path, like payload of events.',
    created_at: 'When the task was first reported.',
    updated_at: 'When it was last reported.',
    started_at: 'When it began: as reported, else when it left pending; null if it has not, or was skipped.',
    completed_at: 'When it ended: as reported, else when its status became final; null if it has not.',
  },
  gaps: {
    after_seq: 'The gap starts after this position.',
    through_seq: 'The gap ends with this position. Some or all of the rows in it are lost.',
    reason: 'The store that lost them, or that all stores were restored from a backup.',
    noticed_at: 'When the service detected it.',
  },
})

/** The answer of `GET /api/v1/query/schema`. Names and types come from the table definitions. */
export function queryCatalogue(queryCaps: QueryCaps, prices: PriceTable): QueryCatalogue {
  const tables = [...TABLES].map(([table, { columns }]) => ({
    name: table,
    description: TABLE_DESCRIPTIONS.get(table) ?? '',
    columns: columns.map(({ name, type }) => ({
      name,
      type,
      description: COLUMN_DESCRIPTIONS.get(table)?.[name] ?? '',
      nullable: type.startsWith('Nullable('),
    })),
  }))
  const { seconds, memoryBytes, rows, resultBytes, atOnce } = queryCaps
  const caps = { seconds, memory_bytes: memoryBytes, rows, result_bytes: resultBytes, at_once: atOnce }
  return { tables, examples: [...EXAMPLES], caps, model_prices: prices }
}
