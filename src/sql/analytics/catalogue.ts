import { t } from 'elysia'
import type { PriceTable } from '../../base/conventions/prices.ts'
import { Count, Named } from '../../base/http/schema.ts'
import { lookup } from '../../base/lookup.ts'
import { EXAMPLES } from './examples.ts'
import type { QueryCaps } from './query-caps.ts'
import { RunQuery } from './schema.ts'
import { TABLES } from './tables.ts'

/** The tables, columns and example queries, for people and for tools that write SQL (docs/sql.md#tables). */

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
  scores: 'The latest state of each score of a run, one per row.',
  pauses: 'Approvals of tool calls and answers to questions that runs waited for, one per row.',
  agents: 'The current version of each agent, including archived agents, one per row.',
  agent_versions: 'All versions of agents, current and earlier, one per row.',
  deliveries: 'Attempts to deliver activity to webhooks, one per row.',
  alert_states: 'Transitions of the series of alerts, one per row.',
  gaps: 'Positions whose rows were lost when a store was set back to an earlier state; empty if nothing was lost.',
})

const BY_WORDS =
  "hasAllTokens(search_text, 'refund timeout') finds whole words with an index. Write them in lower case."
const BY_PATH =
  'Query it by path, as in payload.tokens.in. A dot in a key separates steps of the path: payload.gen_ai.usage.input_tokens ' +
  'finds both {"gen_ai.usage.input_tokens": 5} and {"gen_ai": {"usage": {"input_tokens": 5}}}; quote a step with other ' +
  'characters, as in payload.`x-id`. A value has the type it was sent with. ' +
  'Where a number is expected, it is read as Float64, or null if it is not a number: sum(payload.tokens.in), ' +
  'max(payload.ms), payload.ms / 1000, payload.ms > 250. Elsewhere give the type: max(payload.at::String); ' +
  "payload.id::Int64 for integers beyond 2^53. payload.name::String is '' if the path is missing, payload.a.:Int64 " +
  'is null if the value has another type. payload.^tool is the object at that ' +
  "path. The whole column is null if ClickHouse's JSON type cannot represent it."

const AGENT_SETTINGS = {
  name: 'The display name of the agent.',
  description: 'What the agent is for.',
  runtime_type: 'hosted or external.',
  status: 'active, paused or archived.',
  model: "The provider's name of the model; null for external agents, like the settings that only hosted agents have.",
  prompt: 'The system prompt, with {{KEY}} placeholders.',
  tools: "The tools as JSON text: a list of objects, for JSONExtractArrayRaw(ifNull(tools, '')).",
  output_schema: 'The JSON Schema of its output. Query it by path, like payload of events.',
  input_schema: 'The JSON Schema of its input. Query it by path, like payload of events.',
  expose: 'mcp: the agent is a tool of the MCP server.',
  allow_input_requests: 'Whether the model may ask its caller a question.',
  temperature: "The sampling temperature; null: the model's default.",
  max_output_tokens: "Maximum tokens of an answer; null: the model's default.",
  max_steps: 'Maximum model calls of a run.',
  timeout_seconds: 'Maximum seconds of a run, without waits for people.',
  budget_usd: 'Maximum cost of a run; null: no limit.',
  stale_after_seconds: 'An external run that reports nothing for this long times out; null: never.',
  metadata: 'Query it by path, like payload of events.',
}

const COLUMN_DESCRIPTIONS = lookup<Readonly<Record<string, string>>>({
  events: {
    seq: 'Position in the order of acceptance, as in the cursors of feeds.',
    event_id: "The caller's id of the event, unique in its run, or a ULID assigned by the service.",
    run_id: 'The run it was reported for; only zeros for workspace events, such as transitions of alerts.',
    agent_id: 'The agent of that run; only zeros for workspace events.',
    task_id: 'The task of the run that it is part of; null if it names none.',
    type: 'The name of the event, such as llm.call.',
    level: 'debug, info, warn or error.',
    payload: BY_PATH,
    search_text: `The payload in lower case. ${BY_WORDS}`,
    occurred_at: 'When it happened, according to the caller.',
    received_at: 'When the service accepted it.',
  },
  runs: {
    run_id: 'The run.',
    agent_id: 'The agent it belongs to.',
    agent_name: 'The name of that agent when the run last changed.',
    agent_version: 'The version of that agent that it ran with.',
    status: 'queued, running, awaiting_approval, awaiting_input, completed, failed, cancelled or timed_out.',
    trigger_type: 'manual, scheduled, webhook or sdk.',
    external_run_id: "The caller's own identifier of the run.",
    parent_run_id: 'The run that started it.',
    session_id: 'The session it belongs to.',
    external_user_id: "The caller's own name for the user.",
    metadata: 'Query it by path, like payload of events.',
    tags: 'In the order they were given; arrayJoin(tags) returns one row per tag, has(tags, …) looks one up.',
    input: 'The input of the run. Query it by path, like payload of events.',
    output: 'The output of the run. Query it by path, like payload of events.',
    error_message: 'Why it failed or was cancelled.',
    error_detail: 'Details of the failure. Query it by path, like payload of events.',
    search_text: `All texts of the run in lower case. ${BY_WORDS}`,
    created_at: 'When the service created the run.',
    started_at: 'When it started running.',
    completed_at: 'When it ended, with any status.',
    duration_ms: 'From started_at to completed_at.',
    active_ms: 'duration_ms without waiting_ms: how long the agent itself took.',
    waiting_ms: 'How long it waited for people, without the wait that began at waiting_since. 0 for external runs.',
    waiting_since: 'Since when it waits for a person; null if it does not.',
    input_tokens: 'Input tokens of its model calls: of llm.call events, or as reported with its end.',
    output_tokens: 'Output tokens of the same calls.',
    cache_read_tokens: 'Of input_tokens, those that providers read from their caches.',
    cache_write_tokens: 'Of input_tokens, those that providers wrote to their caches.',
    reasoning_tokens: 'Of output_tokens, those of reasoning.',
    cost_usd: 'Cost of the same calls.',
  },
  tasks: {
    task_id: "The caller's id of the task, unique in its run.",
    run_id: 'The run it is part of.',
    agent_id: 'The agent of that run.',
    parent_task_id: 'The task that it is part of.',
    name: 'The name of the task.',
    status: 'pending, running, completed, failed or skipped.',
    input: 'Query it by path, like payload of events.',
    output: 'Query it by path, like payload of events.',
    error_message: 'Why it failed.',
    created_at: 'When the task was first reported.',
    updated_at: 'When it was last reported.',
    started_at: 'When it began: as reported, else when it left pending; null if it has not, or was skipped.',
    completed_at: 'When it ended: as reported, else when its status became final; null if it has not.',
  },
  scores: {
    score_id: "The caller's id of the score, unique in its run, or a ULID assigned by the service.",
    run_id: 'The run that is scored.',
    agent_id: 'The agent of that run.',
    task_id: 'The task of the run that is scored; null: not a task.',
    event_id: 'The event of the run that is scored; null: not an event.',
    session_id: 'The session that is scored; null: not a session.',
    name: 'What is scored, such as correctness.',
    value: 'The number; 1 and 0 for true and false; null if the score has only a label or text.',
    data_type: 'number, boolean, label or text: the first of these that the score has.',
    label: 'A category.',
    text: 'A verdict in words.',
    comment: 'The reason for the score.',
    source: 'api, person, judge (a model) or import.',
    metadata: 'Query it by path, like payload of events.',
    seq: 'Position in the order of acceptance, as in the cursors of feeds.',
    created_at: 'When the score was given, according to the caller.',
    received_at: 'When the service accepted this state of it.',
  },
  pauses: {
    pause_id: 'The approval or input request.',
    run_id: 'The run that asked.',
    agent_id: 'The agent of that run.',
    kind: 'approval or input.',
    status: 'pending, approved, rejected, answered, expired or cancelled.',
    tool: 'The tool that an approval is about; null for a question.',
    input: 'The arguments that were shown. Query it by path, like payload of events.',
    edited_input: 'The arguments that the person approved instead. Query it by path, like payload of events.',
    question: 'What the model asked; null for an approval.',
    options: 'The answers that the model suggested.',
    answer: 'The answer to the question.',
    comment: 'What the person wrote with the decision.',
    requested_at: 'When the run began to wait.',
    expires_at: 'When it expires; null: never.',
    decided_at: 'When it was decided, expired or was cancelled; null while it is pending.',
    waiting_ms: 'From requested_at to decided_at.',
    decided_by: 'The key that decided, or the person who was signed in.',
    decided_by_person: 'The e-mail address of the person who was signed in, or else their name; null for a key.',
  },
  agents: {
    agent_id: 'The agent.',
    ...AGENT_SETTINGS,
    version: 'Its current version; it rises with each edit.',
    created_at: 'When the agent was created.',
    updated_at: 'When the current version was made.',
  },
  agent_versions: {
    agent_id: 'The agent.',
    version: 'The number of the version, as agent_version of runs.',
    ...AGENT_SETTINGS,
    created_at: 'When the version was made.',
    created_by: 'The key that made it, or the person who was signed in; null: the service.',
    created_by_person: 'The e-mail address of the person who was signed in, or else their name; null for a key.',
    changes: 'Names of the fields that differ from the version before.',
    restored_from: 'The version whose configuration was restored; null: the version was made by an edit.',
  },
  deliveries: {
    delivery_id: 'The delivery, as in the header webhook-id: the same for all its attempts.',
    webhook_id: 'The webhook.',
    type: 'The type of the message, such as run.completed.',
    run_id: 'The run that the message is about; null if it is about none.',
    seq: 'Position of the activity, as seq of events.',
    attempt: 'The number of the attempt, from 1.',
    status:
      'The status of the delivery after the attempt: succeeded, pending (another attempt follows) or failed (given up).',
    http_status: 'The status of the answer; null if there was none.',
    duration_ms: 'How long the attempt took.',
    response: 'The beginning of the answer, or why there was none.',
    at: 'When the attempt was made.',
  },
  alert_states: {
    alert_id: 'The alert.',
    series: 'The values of its columns `by`, as a JSON object in text.',
    state: 'ok, pending, firing, recovering, no_data or error.',
    previous_state: 'The state before; the same as state for a reminder.',
    value: 'The value of the condition; null if there was none.',
    seq: 'Position of the event that reports it, as seq of events.',
    at: 'The tick at which the state changed.',
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
