import { Type } from '@sinclair/typebox'
import { t } from 'elysia'
import { Body, Count, Int, Named } from '../../base/http/schema.ts'

/** Wire types of usage (docs/usage.md). */

/** Past these, sums could lose digits. */
const TOKENS_MAX = 1e15
const COST_USD_MAX = 1e12

function reportedPart(description: string) {
  return t.Optional(Int({ minimum: 0, maximum: TOKENS_MAX, description }))
}

/** What a caller says that a run used. */
export const ReportedUsage = Named(
  'ReportedUsage',
  Body(
    {
      input_tokens: Int({ minimum: 0, maximum: TOKENS_MAX, description: 'Tokens that models read.' }),
      output_tokens: Int({ minimum: 0, maximum: TOKENS_MAX, description: 'Tokens that models wrote.' }),
      cache_read_tokens: reportedPart('Of `input_tokens`, those read from a cache. Default 0.'),
      cache_write_tokens: reportedPart('Of `input_tokens`, those written to a cache. Default 0.'),
      reasoning_tokens: reportedPart('Of `output_tokens`, those of reasoning. Default 0.'),
      cost_usd: t.Optional(
        Type.Number({
          minimum: 0,
          maximum: COST_USD_MAX,
          description: 'What they cost, in US dollars. Default: the sum of the `llm.call` events.',
        }),
      ),
    },
    { description: 'What the run used in all. Replaces the sum of its `llm.call` events, also of later ones.' },
  ),
)
export type ReportedUsage = typeof ReportedUsage.static

export const Usage = Named(
  'Usage',
  t.Object(
    {
      input_tokens: Count('Input tokens of all model calls, with those read from or written to a cache.'),
      output_tokens: Count('Output tokens of all model calls, with those of reasoning.'),
      total_tokens: Count('The sum of both.'),
      cache_read_tokens: Count('Of the input tokens, those that providers read from their caches.'),
      cache_write_tokens: Count('Of the input tokens, those that providers wrote to their caches.'),
      reasoning_tokens: Count('Of the output tokens, those of reasoning.'),
    },
    { description: 'Token usage of the model calls of the run.' },
  ),
)
export type Usage = typeof Usage.static
