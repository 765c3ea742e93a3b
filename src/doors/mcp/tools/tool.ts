import type { TSchema } from '@sinclair/typebox'
import { ApiError } from '../../../base/errors.ts'
import type { Budget } from '../../../base/http/rate-limit.ts'
import type { CallContext, ToolDefinition, ToolProvider } from '../provider.ts'
import { argumentsOf, toolResult } from '../results.ts'

/** A tool of the service itself. */
export interface OwnTool<S extends TSchema = TSchema> extends Omit<ToolDefinition, 'inputSchema'> {
  /** Of its arguments. */
  readonly input: S
  /** `workspace`: agent keys may not use it. */
  readonly audience: 'workspace' | 'any'
  readonly budget?: Budget
  /** @returns the data of the result */
  run(context: CallContext, input: S['static']): Promise<object> | object
}

/** For the type of its arguments. */
export function ownTool<S extends TSchema>(tool: OwnTool<S>): OwnTool {
  return tool as OwnTool
}

/** Offers tools of the service. An agent key is shown only those that it may use. */
export function ownTools(tools: readonly OwnTool[]): ToolProvider {
  const byName = new Map(tools.map((tool) => [tool.name, tool]))
  const definitions = tools.map(({ input, audience, budget: _budget, run: _run, ...definition }) => ({
    audience,
    definition: { ...definition, inputSchema: input },
  }))
  return {
    list: ({ caller }) => ({
      tools: definitions
        .filter(({ audience }) => audience === 'any' || caller.type === 'workspace')
        .map(({ definition }) => definition),
    }),
    find: (_caller, name) => {
      const tool = byName.get(name)
      if (tool === undefined) return undefined
      const { input, audience, budget, run } = tool
      return {
        ...(budget !== undefined && { budget }),
        call: async (context, given) => {
          if (audience === 'workspace' && context.caller.type !== 'workspace')
            throw new ApiError('FORBIDDEN', 'this tool takes a workspace key (svc_ws_…), not an agent key', {
              reason: 'wrong_key_type',
            })
          return toolResult(await run(context, argumentsOf(input, given)))
        },
      }
    },
  }
}
