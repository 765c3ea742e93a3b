import { invalid } from '../../base/errors.ts'
import { EMPTY_OBJECT, encodeJson, RawJson } from '../../base/raw-json.ts'
import { checkJsonSchema } from './json-schema.ts'
import { type AgentRow, type CreateAgent, type EditAgent, EXTERNAL_FIELDS, HOSTED_FIELDS } from './schema.ts'
import { checkTools } from './tools.ts'

/** The fields of an agent that its owner sets: the row without ids, version and times. */
export type Settings = Omit<AgentRow, 'agent_id' | 'version' | 'created_at' | 'updated_at'>

const MAX_STEPS_DEFAULT = 20
const TIMEOUT_SECONDS_DEFAULT = 300

const NO_HOSTED_SETTINGS = Object.fromEntries(HOSTED_FIELDS.map((field) => [field, null])) as Record<
  (typeof HOSTED_FIELDS)[number],
  null
>

/**
 * The settings of a new agent, its defaults filled in (docs/agents.md).
 * @throws ApiError VALIDATION_ERROR naming the field that is missing, wrong, or not for this runtime type
 */
export function settingsOf(body: CreateAgent): Settings {
  const runtimeType = body.runtime_type ?? 'external'
  checkFields(body, runtimeType)
  const shared = {
    name: body.name,
    description: body.description ?? null,
    runtime_type: runtimeType,
    status: body.status ?? 'active',
    metadata: body.metadata ?? EMPTY_OBJECT,
  }
  if (runtimeType === 'external')
    return { ...shared, ...NO_HOSTED_SETTINGS, stale_after_seconds: body.stale_after_seconds ?? null }
  if (body.model === undefined) throw invalid('model', 'required for a hosted agent')
  if (body.prompt === undefined) throw invalid('prompt', 'required for a hosted agent')
  return {
    ...shared,
    model: body.model,
    prompt: body.prompt,
    tools: jsonOf(body.tools ?? []),
    output_schema: jsonOf(body.output_schema ?? null),
    input_schema: jsonOf(body.input_schema ?? null),
    expose: body.expose ?? [],
    allow_input_requests: body.allow_input_requests ?? false,
    temperature: body.temperature ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    max_steps: body.max_steps ?? MAX_STEPS_DEFAULT,
    timeout_seconds: body.timeout_seconds ?? TIMEOUT_SECONDS_DEFAULT,
    budget_usd: body.budget_usd ?? null,
    stale_after_seconds: null,
  }
}

/**
 * The settings after an edit.
 * @throws ApiError VALIDATION_ERROR as in {@link settingsOf}, and for any `runtime_type`
 */
export function edited(settings: Settings, { runtime_type, ...edit }: EditAgent): Settings {
  if (runtime_type !== undefined) throw invalid('runtime_type', 'cannot be changed; create another agent')
  checkFields(edit, settings.runtime_type)
  const changes = {
    ...edit,
    ...(edit.tools === undefined ? {} : { tools: jsonOf(edit.tools) }),
    ...(edit.output_schema === undefined ? {} : { output_schema: jsonOf(edit.output_schema) }),
    ...(edit.input_schema === undefined ? {} : { input_schema: jsonOf(edit.input_schema) }),
    ...(edit.expose === null && settings.runtime_type === 'hosted' ? { expose: [] } : {}),
  } as Partial<Settings>
  return { ...settings, ...changes }
}

/** A null is allowed for fields that the runtime type does not have, so that a record can be sent back unchanged. */
function checkFields(body: Partial<CreateAgent>, runtimeType: Settings['runtime_type']): void {
  const [foreign, owner] = runtimeType === 'hosted' ? [EXTERNAL_FIELDS, 'an external'] : [HOSTED_FIELDS, 'a hosted']
  for (const field of foreign)
    if (body[field] !== undefined && body[field] !== null)
      throw invalid(field, `only ${owner} agent has this; this agent's runtime_type is ${runtimeType}`)
  if (body.tools !== undefined) checkTools(body.tools)
  for (const field of ['output_schema', 'input_schema'] as const) {
    const schema = body[field]
    if (schema !== undefined && schema !== null) checkJsonSchema(schema, field)
  }
}

function jsonOf<T extends object | null>(value: T): RawJson | Extract<T, null> {
  return (value === null ? null : new RawJson(encodeJson(value))) as RawJson | Extract<T, null>
}
