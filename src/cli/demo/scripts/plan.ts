import type { JsonObject } from '../../../client/json.ts'
import type { Random } from '../random.ts'

/** One run of a simulated agent, planned before it starts. */
export interface RunPlan {
  readonly triggerType: 'manual' | 'scheduled' | 'webhook' | 'sdk'
  readonly input: JsonObject
  readonly externalRunId: string | undefined
  readonly tags: readonly string[]
  readonly metadata: JsonObject
  readonly tasks: readonly TaskPlan[]
  /** The run's output if all tasks succeed. */
  readonly output: JsonObject
}

export interface TaskPlan {
  readonly name: string
  readonly input: JsonObject
  readonly steps: readonly Step[]
  readonly output: JsonObject
  /** The task is reported as skipped. */
  readonly skipped?: boolean
  /** An error after the last step; the run fails with it. */
  readonly failure?: Failure
}

export interface Failure {
  readonly message: string
  readonly detail: JsonObject
}

export type Step = LlmStep | ToolStep | NoteStep | DelegateStep

/** A language model call. */
interface LlmStep {
  readonly kind: 'llm'
  readonly ms: number
  readonly payload: JsonObject
}

/** A tool call; with `error` it fails. */
interface ToolStep {
  readonly kind: 'tool'
  readonly ms: number
  readonly tool: string
  readonly input: JsonObject
  readonly output: JsonObject
  readonly error?: string
}

/** Another event of the agent. */
interface NoteStep {
  readonly kind: 'note'
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly type: string
  readonly payload: JsonObject
}

/** Delegates a part of the work to another agent, as a child run. */
export interface DelegateStep {
  readonly kind: 'delegate'
  readonly to: ProfileName
  /** Seed of the child run. */
  readonly seed: number
}

type ProfileName = 'support' | 'coding' | 'research'

/** A kind of agent. */
export interface Profile {
  readonly name: ProfileName
  readonly description: string
  /**
   * How its SDK makes starting a run repeatable: it chooses the run's id itself, or leaves that to the service and
   * sends an Idempotency-Key.
   */
  readonly choosesRunIds: boolean
  plan(random: Random): RunPlan
}

export interface Model {
  readonly provider: string
  readonly name: string
  /** US dollars for a million tokens. */
  readonly inputPrice: number
  readonly outputPrice: number
  readonly typicalMs: number
}

/**
 * A model call as the OpenTelemetry semantic conventions for generative AI name its parts; `latency_ms` and `cost_usd` are
 * ours.
 */
export function llm(random: Random, model: Model, finish: 'stop' | 'tool_calls' | 'length', context = 1): LlmStep {
  const inputTokens = random.int(350, 1_800) * context
  const outputTokens = finish === 'tool_calls' ? random.int(25, 140) : random.int(120, 900)
  const ms = random.latencyMs(model.typicalMs)
  const cost = (inputTokens * model.inputPrice + outputTokens * model.outputPrice) / 1e6
  return {
    kind: 'llm',
    ms,
    payload: {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': model.provider,
      'gen_ai.request.model': model.name,
      'gen_ai.response.model': model.name,
      'gen_ai.response.finish_reasons': [finish],
      'gen_ai.usage.input_tokens': inputTokens,
      'gen_ai.usage.output_tokens': outputTokens,
      latency_ms: ms,
      cost_usd: Math.round(cost * 1e6) / 1e6,
    },
  }
}
