import { Type } from '@sinclair/typebox'
import { t } from 'elysia'
import {
  Body,
  Described,
  FreeForm,
  JsonText,
  ListQuery,
  Named,
  Nullable,
  OneOf,
  Page,
  Text,
  Timestamp,
  Uuid,
} from '../../base/http/schema.ts'
import type { RowOf } from '../../base/timestamp.ts'
import { Tools } from './tools.ts'

/** The wire format of agents (docs/agents.md). */

const NAME_LENGTH_MAX = 200
const DESCRIPTION_LENGTH_MAX = 10_000
const MODEL_LENGTH_MAX = 200
const PROMPT_LENGTH_MAX = 500_000
const TEMPERATURE_MAX = 2
const OUTPUT_TOKENS_MAX = 10_000_000
const STEPS_MAX = 1_000
const TIMEOUT_SECONDS_MAX = 86_400
const BUDGET_USD_MAX = 1_000_000
const STALE_AFTER_SECONDS_MAX = 365 * 86_400

const RuntimeType = Named(
  'RuntimeType',
  OneOf(
    ['hosted', 'external'],
    'The service runs hosted agents; external ones report to it. Fixed at creation; default external.',
  ),
)
const AgentStatus = Named(
  'AgentStatus',
  OneOf(['active', 'paused'], 'A paused agent cannot be invoked; it may still report. Default active.'),
)
const StoredStatus = Named(
  'StoredAgentStatus',
  OneOf(
    ['active', 'paused', 'archived'],
    'A paused agent cannot be invoked; it may still report. An archived one can do neither, until it is restored.',
  ),
)

/** Editable fields of every agent. */
const common = {
  name: Text({ minLength: 1, maxLength: NAME_LENGTH_MAX, description: 'The display name of the agent.' }),
  description: Nullable(Text({ maxLength: DESCRIPTION_LENGTH_MAX, description: 'What the agent is for.' })),
  status: AgentStatus,
  metadata: Described(FreeForm, 'Any data to store with the agent.'),
}

/** Fields of hosted agents only. Its integers are not `t.Integer`, which also accepts numeric strings. */
const hosted = {
  model: Text({
    minLength: 1,
    maxLength: MODEL_LENGTH_MAX,
    description: "The provider's name of the model.",
  }),
  prompt: Text({
    minLength: 1,
    maxLength: PROMPT_LENGTH_MAX,
    description: 'The system prompt, with `{{KEY}}` placeholders that the caller of invoke fills.',
  }),
  tools: Tools,
  output_schema: Nullable(
    t.Record(t.String(), t.Unknown(), { description: 'A JSON Schema that the output of a run must match.' }),
  ),
  input_schema: Nullable(
    t.Record(t.String(), t.Unknown(), { description: 'A JSON Schema that the `input` of each run must match.' }),
  ),
  expose: Nullable(
    t.Array(OneOf(['mcp']), {
      uniqueItems: true,
      description: '`mcp`: the agent is a tool of the MCP server of this service. Default none.',
    }),
  ),
  allow_input_requests: t.Boolean({ description: 'Lets the model ask its caller a question. Default false.' }),
  temperature: Nullable(
    t.Number({ minimum: 0, maximum: TEMPERATURE_MAX, description: "Sampling temperature; null: the model's default." }),
  ),
  max_output_tokens: Nullable(
    Type.Integer({
      minimum: 1,
      maximum: OUTPUT_TOKENS_MAX,
      description: "Maximum length of one answer of the model; null: the model's default.",
    }),
  ),
  max_steps: Type.Integer({ minimum: 1, maximum: STEPS_MAX, description: 'Model calls a run may make. Default 20.' }),
  timeout_seconds: Type.Integer({
    minimum: 1,
    maximum: TIMEOUT_SECONDS_MAX,
    description: 'Maximum duration of a run, not counting time spent waiting for a person. Default 300.',
  }),
  budget_usd: Nullable(
    t.Number({
      exclusiveMinimum: 0,
      maximum: BUDGET_USD_MAX,
      description: 'A run that would exceed it fails. Child runs count towards it.',
    }),
  ),
}

/** Fields of external agents only. */
const external = {
  stale_after_seconds: Nullable(
    Type.Integer({
      minimum: 1,
      maximum: STALE_AFTER_SECONDS_MAX,
      description: 'A run that is silent for this long is timed_out; null: never.',
    }),
  ),
}

export const HOSTED_FIELDS = Object.keys(hosted) as readonly (keyof typeof hosted)[]
export const EXTERNAL_FIELDS = Object.keys(external) as readonly (keyof typeof external)[]

const editable = t.Partial(t.Object({ ...common, ...hosted, ...external })).properties

/** Body of `POST /api/v1/agents`. Which fields a runtime type needs or forbids is checked by `settings.ts`. */
export const CreateAgent = Named(
  'CreateAgent',
  Body({ ...editable, name: common.name, runtime_type: t.Optional(RuntimeType) }),
)
export type CreateAgent = typeof CreateAgent.static

/** Body of `PATCH /api/v1/agents/:agent_id`: the fields to change. Null clears a nullable field. */
export const EditAgent = Named(
  'EditAgent',
  Body({
    ...editable,
    // Listed only so that the error can say why it is rejected.
    runtime_type: t.Optional(t.Unknown({ description: 'Rejected: fixed at creation.' })),
  }),
)
export type EditAgent = typeof EditAgent.static

/** An agent as clients see it. Fields that its runtime type does not have are null. */
export const AgentRecord = Named(
  'Agent',
  t.Object(
    {
      agent_id: Described(Uuid, 'The agent.'),
      name: t.String({ description: 'The display name of the agent.' }),
      description: Described(Nullable(t.String()), 'What the agent is for.'),
      runtime_type: RuntimeType,
      status: StoredStatus,
      model: Described(Nullable(t.String()), 'The model that it uses.'),
      prompt: Described(Nullable(t.String()), 'The system prompt, with `{{KEY}}` placeholders.'),
      tools: Described(Nullable(JsonText(Tools)), 'What the model can call.'),
      output_schema: Described(
        Nullable(JsonText({ type: 'object', additionalProperties: true })),
        'A JSON Schema that the output of a run must match.',
      ),
      input_schema: Described(
        Nullable(JsonText({ type: 'object', additionalProperties: true })),
        'A JSON Schema that the `input` of each run must match; null: any input.',
      ),
      expose: Described(
        Nullable(t.Array(OneOf(['mcp']))),
        '`mcp`: the agent is a tool of the MCP server of this service.',
      ),
      allow_input_requests: Described(Nullable(t.Boolean()), 'Whether the model may ask its caller a question.'),
      temperature: Described(Nullable(t.Number()), "Sampling temperature; null: the model's default."),
      max_output_tokens: Described(Nullable(Type.Integer()), 'Maximum length of one answer of the model, in tokens.'),
      max_steps: Described(Nullable(Type.Integer()), 'Model calls that a run may make.'),
      timeout_seconds: Described(Nullable(Type.Integer()), 'Maximum duration of a run.'),
      budget_usd: Described(Nullable(t.Number()), 'Maximum cost of a run, in US dollars; null: no limit.'),
      stale_after_seconds: Described(
        Nullable(Type.Integer()),
        'A run that is silent for this long is timed_out; null: never.',
      ),
      metadata: Described(FreeForm, 'Data stored with the agent.'),
      version: Type.Integer({ minimum: 1, description: 'Incremented by each edit that changes something.' }),
      created_at: Described(Timestamp, 'When the agent was created.'),
      updated_at: Described(Timestamp, 'When it was last edited.'),
    },
    { description: 'An agent. Fields that its runtime type does not have are null.' },
  ),
)
export type AgentRecord = typeof AgentRecord.static

/** Response of `DELETE /api/v1/agents/:agent_id`. */
export const ArchivedAgent = Named(
  'ArchivedAgent',
  t.Object({
    agent_id: Described(Uuid, 'The agent.'),
    status: t.Literal('archived', { description: 'It can no longer run or report.' }),
  }),
)
export type ArchivedAgent = typeof ArchivedAgent.static

/** Body of `POST /api/v1/agents/:agent_id/restore`. */
export const RestoreAgent = Named('RestoreAgent', Body({}))

/** Query of `GET /api/v1/agents`. Conditions are combined with AND; archived agents are listed only by their status. */
export const ListAgents = ListQuery({ status: t.Optional(StoredStatus), runtime_type: t.Optional(RuntimeType) })
export type ListAgents = typeof ListAgents.static

export const AgentPage = Page('AgentPage', AgentRecord)

/** A row of `agents`. */
export type AgentRow = RowOf<AgentRecord>
