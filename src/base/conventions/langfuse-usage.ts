import { isObject, parsedJson } from '../json-object.ts'
import { isPlausible, type UsageNumber } from './usage-names.ts'

/** The usage of a generation; undefined for what is not reported. */
export type LangfuseUsage = { readonly [field in UsageNumber]?: number }

/** Longer ones are not usage. */
const TEXT_MAX = 16 * 1024

/** A member that Langfuse's three dialects have as JSON text; undefined for none. */
type Reported = string | undefined

/**
 * The usage that a generation reports in `usage` (`promptTokens`, or `input`, `output`, `total`, `unit` and costs) or in
 * `usageDetails` and `costDetails`, which take precedence. Like Langfuse, adds up all details whose name contains `input` or
 * `output`: cached tokens are among them.
 */
export function langfuseUsage(usage: Reported, usageDetails: Reported, costDetails: Reported): LangfuseUsage {
  const legacy = numbersOf(usage)
  const details = numbersOf(usageDetails)
  const tokens = details.numbers.size > 0 ? details : legacy.unit === 'TOKENS' ? legacy : NOTHING
  const plausible: { [field in UsageNumber]?: number } = {}
  const add = (field: UsageNumber, value: number | undefined) => {
    if (value !== undefined && isPlausible(field, value)) plausible[field] = value
  }
  const input = first(tokens, 'promptTokens', 'prompt_tokens') ?? sumOf(tokens, 'input')
  const output = first(tokens, 'completionTokens', 'completion_tokens') ?? sumOf(tokens, 'output')
  const isUnsplit = input === undefined && output === undefined
  add('inputTokens', isUnsplit ? first(tokens, 'total', 'totalTokens', 'total_tokens') : input)
  add('outputTokens', output)
  add('cacheReadTokens', first(tokens, ...CACHE_READ))
  add('cacheWriteTokens', first(tokens, ...CACHE_WRITE))
  add('reasoningTokens', first(tokens, ...REASONING))
  add('costUsd', costOf(numbersOf(costDetails), legacy))
  return plausible
}

const CACHE_READ = [
  'input_cached_tokens',
  'input_cache_read',
  'input_cache_read_tokens',
  'cache_read_input_tokens',
  'cached_input_tokens',
  'cachedInputTokens',
  'prompt_tokens_details.cached_tokens',
  'input_tokens_details.cached_tokens',
]
const CACHE_WRITE = [
  'input_cache_creation',
  'input_cache_write',
  'input_cache_creation_tokens',
  'cache_creation_input_tokens',
  'cache_write_input_tokens',
]
const REASONING = [
  'output_reasoning_tokens',
  'output_reasoning',
  'completion_tokens_details.reasoning_tokens',
  'output_tokens_details.reasoning_tokens',
]

/** The members of `usage` that are numbers. */
const COUNTS = new Set(
  ['promptTokens', 'completionTokens', 'totalTokens', 'prompt_tokens', 'completion_tokens', 'total_tokens'].concat([
    'input',
    'output',
    'total',
    'inputCost',
    'outputCost',
    'totalCost',
  ]),
)

/** The member of reported usage that should be a number, and is something else; undefined if none is. */
export function notANumber(member: 'usage' | 'usageDetails' | 'costDetails', text: string): string | undefined {
  const value = text.length > TEXT_MAX ? undefined : parsedJson(text)
  if (!isObject(value)) return undefined
  for (const [name, count] of Object.entries(value)) {
    const isOther = member === 'usage' && !COUNTS.has(name)
    if (!isOther && count !== null && typeof count !== 'number' && !isObject(count)) return name
  }
  return undefined
}

interface Numbers {
  /** By name; those of a nested object by both names, with a dot. */
  readonly numbers: ReadonlyMap<string, number>
  /** What the legacy usage counts. */
  readonly unit: string
}

const NOTHING: Numbers = { numbers: new Map(), unit: 'TOKENS' }

function numbersOf(text: Reported): Numbers {
  if (text === undefined || text.length > TEXT_MAX) return NOTHING
  const value = parsedJson(text)
  if (!isObject(value)) return NOTHING
  const numbers = new Map<string, number>()
  for (const [name, member] of Object.entries(value)) {
    if (typeof member === 'number') numbers.set(name, member)
    else if (isObject(member)) {
      for (const [inner, nested] of Object.entries(member)) {
        if (typeof nested === 'number') numbers.set(`${name}.${inner}`, nested)
      }
    }
  }
  return { numbers, unit: typeof value.unit === 'string' ? value.unit : 'TOKENS' }
}

function first({ numbers }: Numbers, ...names: readonly string[]): number | undefined {
  for (const name of names) if (numbers.has(name)) return numbers.get(name)
  return undefined
}

/** Members of nested objects are parts of others and do not count. */
function sumOf({ numbers }: Numbers, part: string): number | undefined {
  let sum: number | undefined
  for (const [name, value] of numbers) {
    if (name.includes(part) && !name.includes('.') && !name.endsWith('Cost')) sum = (sum ?? 0) + value
  }
  return sum
}

function costOf(details: Numbers, legacy: Numbers): number | undefined {
  const total = details.numbers.get('total')
  if (total !== undefined) return total
  if (details.numbers.size > 0) return [...details.numbers.values()].reduce((sum, cost) => sum + cost, 0)
  const parts = [first(legacy, 'inputCost'), first(legacy, 'outputCost')].filter((cost) => cost !== undefined)
  return first(legacy, 'totalCost') ?? (parts.length === 0 ? undefined : parts.reduce((sum, cost) => sum + cost, 0))
}
