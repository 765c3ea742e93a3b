import { t } from 'elysia'
import { Count, Named } from '../http/schema.ts'
import { EXAMPLES } from './examples.ts'
import { RunQuery } from './schema.ts'
import { TABLES } from './views.ts'

/** What there is to ask, for people and for tools that write SQL (docs/specification.md#tables). */

const Column = t.Object({
  name: t.String({ description: 'The column.' }),
  type: t.String({ description: "As ClickHouse names it, such as `DateTime64(3, 'UTC')`." }),
  description: t.String({ description: 'What it holds.' }),
  nullable: t.Boolean({ description: 'Whether it can be null.' }),
})

const Caps = t.Object(
  {
    seconds: Count('The longest that a query may run.'),
    memory_bytes: Count('Memory that it may use.'),
    rows: Count('An answer in JSON has the first ones; `truncated` says that there were more.'),
    result_bytes: Count('Of the result, as the engine holds it.'),
    at_once: Count('Queries of the workspace that may run at the same time.'),
  },
  { description: 'What one query may use.' },
)
/** What one query may use. */
export type AnswerCaps = typeof Caps.static

export const QueryCatalogue = Named(
  'QueryCatalogue',
  t.Object({
    tables: t.Array(
      t.Object({
        name: t.String({ description: 'The table.' }),
        description: t.String({ description: 'What a row of it is.' }),
        columns: t.Array(Column, { description: 'Its columns, in order.' }),
      }),
      { description: 'What a query can read.' },
    ),
    examples: t.Array(
      t.Object({
        title: t.String({ description: 'The question, in a few words.' }),
        description: t.String({ description: 'What the answer tells.' }),
        query: t.String({ description: 'The query.' }),
        params: RunQuery.properties.params,
      }),
      { description: 'Queries that run as they are.' },
    ),
    caps: Caps,
  }),
)
export type QueryCatalogue = typeof QueryCatalogue.static

/** The answer of `GET /api/v1/query/schema`. Names and types are those of the tables themselves. */
export function queryCatalogue(caps: AnswerCaps): QueryCatalogue {
  const tables = Object.entries(TABLES).map(([table, { columns }]) => ({
    name: table,
    description: TABLE_DESCRIPTIONS[table] ?? '',
    columns: columns.map(({ name, type }) => ({
      name,
      type,
      description: COLUMN_DESCRIPTIONS[table]?.[name] ?? '',
      nullable: type.startsWith('Nullable('),
    })),
  }))
  return { tables, examples: [...EXAMPLES], caps }
}

const TABLE_DESCRIPTIONS: Readonly<Record<string, string>> = {
  events: 'What runs reported, an event a row. Events are never changed.',
  runs: 'The latest state of each run, a run a row.',
  tasks: 'The latest state of each task, a task a row.',
  gaps: 'Positions whose rows were lost with a store that went back to an earlier state; empty as long as nothing was lost.',
}

const BY_PATH =
  'Queried by path, as in payload.tokens.in. A dot in a key is a step of the path: payload.gen_ai.usage.input_tokens ' +
  'finds {"gen_ai.usage.input_tokens": 5} and {"gen_ai": {"usage": {"input_tokens": 5}}} alike; a step with other ' +
  'signs in it is quoted, as in payload.`x-id`. A value has the type it was sent with. ' +
  'Where a number is wanted it counts as one (Float64), and as null if it is none: sum(payload.tokens.in), ' +
  'max(payload.ms), payload.ms / 1000, payload.ms > 250. Anywhere else say which type is meant: max(payload.at::String); ' +
  "payload.id::Int64 for whole numbers beyond 2^53. payload.name::String is '' where there is nothing, payload.a.:Int64 " +
  'is null where there is anything else. payload.^tool is the object below that ' +
  "path. Null as a whole where ClickHouse's JSON cannot hold it."

const COLUMN_DESCRIPTIONS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  events: {
    seq: 'Position in the order of acceptance; the seq of the cursors of feeds.',
    event_id: "The caller's id of the event, unique in its run, or a ULID of the service's.",
    run_id: 'The run it was reported for.',
    agent_id: 'The agent of that run.',
    type: 'The name of the event, such as llm.call.',
    level: 'debug, info, warn or error.',
    payload: BY_PATH,
    occurred_at: 'When it happened, as the caller says.',
    received_at: 'When the service accepted it.',
  },
  runs: {
    run_id: 'The run.',
    agent_id: 'The agent it belongs to.',
    agent_name: 'The name of that agent when the run last changed.',
    status: 'queued, running, awaiting_approval, awaiting_input, completed, failed, cancelled or timed_out.',
    trigger_type: 'manual, scheduled, webhook or sdk.',
    external_run_id: "The caller's own name for it.",
    parent_run_id: 'The run that asked for it.',
    session_id: 'The session it is a turn of.',
    tags: 'In the order they were given; arrayJoin(tags) makes a row of each, has(tags, …) looks one up.',
    input: 'What it was started with. By path, like payload of events.',
    output: 'What it ended with. By path, like payload of events.',
    error_message: 'Why it failed or was cancelled.',
    created_at: 'When the service heard of it first.',
    started_at: 'When it began to run.',
    completed_at: 'When it ended, however it ended.',
    duration_ms: 'From started_at to completed_at.',
    input_tokens: 'Of the model calls that the service made for it; 0 for an external agent.',
    output_tokens: 'As input_tokens.',
    cost_usd: 'Of the same calls.',
  },
  tasks: {
    task_id: "The caller's id of the task, unique in its run.",
    run_id: 'The run it is part of.',
    agent_id: 'The agent of that run.',
    name: 'What it is called.',
    status: 'pending, running, completed, failed or skipped.',
    input: 'By path, like payload of events.',
    output: 'By path, like payload of events.',
    created_at: 'When the service heard of it first.',
    updated_at: 'When it last changed; for a task that has ended, when it ended.',
  },
  gaps: {
    after_seq: 'Rows after this position',
    through_seq: 'up to this one are lost, or some of them.',
    reason: 'The store that lost them, or that all were restored from a backup.',
    noticed_at: 'When the service noticed.',
  },
}
