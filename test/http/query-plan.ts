import { createPrices } from '../../src/base/conventions/prices.ts'
import type { Random } from '../../src/cli/demo/random.ts'
import type { JsonObject } from '../../src/client/json.ts'
import type { Level, RunOptions } from '../../src/client/run.ts'

/** A kind of agent. */
export interface Profile {
  readonly name: 'support' | 'coding' | 'research'
  readonly description: string
  plan(random: Random): RunPlan
}

/** One run of a simulated agent, planned before it starts. */
export interface RunPlan extends RunOptions {
  readonly tags: readonly string[]
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
  readonly isSkipped?: boolean
  /** What goes wrong after the last step; the run fails with it. */
  readonly failure?: { readonly message: string; readonly detail: JsonObject } | undefined
}

export type Step = Action | Delegation

/** Work of the agent itself, with the events around it. */
export interface Action {
  readonly before?: PlannedEvent
  readonly ms: number
  readonly after: PlannedEvent
}

export interface PlannedEvent {
  readonly type: string
  readonly level: Level
  readonly payload: JsonObject
}

/** Gives a part of the work to another agent, as a child run. */
export interface Delegation {
  readonly to: Profile['name']
  /** Seed of the child run. */
  readonly seed: number
}

export interface Model {
  readonly provider: string
  /** One that has a list price. */
  readonly name: string
  readonly typicalMs: number
}

const PRICES = await createPrices().loaded()

/** The actions of an agent that uses a model. */
export function createActions(random: Random, model: Model) {
  return {
    /**
     * A model call as the OpenTelemetry semantic conventions for generative AI name its parts; `latency_ms` and `cost_usd`
     * are ours.
     */
    llm(finish: 'stop' | 'tool_calls', context = 1): Action {
      const inputTokens = random.int(350, 1_800) * context
      const outputTokens = finish === 'tool_calls' ? random.int(25, 140) : random.int(120, 900)
      const cost = PRICES.costUsd(model.name, { inputTokens, outputTokens }, Date.now()) ?? 0
      const ms = random.latencyMs(model.typicalMs)
      const payload = {
        'gen_ai.operation.name': 'chat',
        'gen_ai.provider.name': model.provider,
        'gen_ai.request.model': model.name,
        'gen_ai.response.model': model.name,
        'gen_ai.response.finish_reasons': [finish],
        'gen_ai.usage.input_tokens': inputTokens,
        'gen_ai.usage.output_tokens': outputTokens,
        latency_ms: ms,
        cost_usd: Math.round(cost * 1e6) / 1e6,
      }
      return { ms, after: { type: 'llm.call', level: 'info', payload } }
    },

    /** A tool call; with `error` it fails. */
    tool(name: string, typicalMs: number, input: JsonObject, output: JsonObject, error?: string): Action {
      const ms = random.latencyMs(typicalMs)
      const call = {
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': name,
        'gen_ai.tool.call.id': `call_${random.int(1e9, 9e9).toString(36)}`,
      }
      const ended = error === undefined ? { output } : { 'error.type': error }
      return {
        before: { type: 'tool.call.started', level: 'info', payload: { ...call, input } },
        ms,
        after: {
          type: 'tool.call.finished',
          level: error === undefined ? 'info' : 'warn',
          payload: { ...call, ...ended, latency_ms: ms },
        },
      }
    },
  }
}

/** Another event of an agent. */
export function note(level: Level, type: string, payload: JsonObject): Action {
  return { ms: 0, after: { type, level, payload } }
}
