import { lookup } from '../../base/lookup.ts'
import { takesFunction } from './functions.ts'
import { refusal } from './problems.ts'
import { type SqlToken, sqlTokens } from './sql-tokens.ts'

/** What calls of these functions become, given their arguments and the time in Unix milliseconds. */
const CLOCKS = lookup<(args: string, ms: number) => string>({
  now: (args, ms) => `toDateTime(${listed(String(Math.floor(ms / 1000)), args)})`,
  now64: (args, ms) => `toDateTime64(${listed(`CAST('${ms / 1000}', 'Decimal(18, 3)')`, args === '' ? '3' : args)})`,
  today: (_, ms) => `toDate(toDateTime(${Math.floor(ms / 1000)}))`,
  yesterday: (_, ms) => `(toDate(toDateTime(${Math.floor(ms / 1000)})) - 1)`,
})

/** Other functions of the clock. Some may be written without brackets. */
const OTHER_CLOCKS =
  /^(curdate|current_date|current_timestamp|localtime|localtimestamp|utc_?timestamp|nowInBlock|nowInBlock64)$/i
const RANDOM =
  /^(rand|random[A-Z]\w*|rand\d+|rand[A-Z]\w*|fuzzBits|array(Partial)?Shuffle|generate(UUID|Snowflake)\w*|dateTime(64)?ToUUIDv7)$/i
/** They depend on how the rows happen to be stored, or keep a sample of them. */
const UNSTABLE =
  /^(rowNumberIn(All)?Blocks?|lowCardinality(Indices|Keys)|groupArraySample|(quantiles?|median)(|TDigest|TDigestWeighted|GK))((If|Array|Map|Distinct|OrNull|OrDefault|ForEach|ArgMin|ArgMax|Resample)*)$/i

/**
 * Replaces the clock of a query in normal form by a fixed time.
 * @throws ApiError VALIDATION_ERROR for functions whose result is not determined by the rows and the time
 */
export function withFixedTime(text: string, ms: number): string {
  const tokens = sqlTokens(text)
  return fixed(tokens, closings(tokens), { from: 0, to: tokens.length }, ms)
}

interface Range {
  readonly from: number
  /** Exclusive. */
  readonly to: number
}

/** Passes over each token once: a query may have a thousand calls within each other, and all its length in the innermost. */
function fixed(tokens: readonly SqlToken[], ends: readonly number[], { from, to }: Range, ms: number): string {
  let text = ''
  for (let at = from; at < to; at++) {
    const name = functionAt(tokens, at)
    if (name !== undefined) refuse(name)
    const clock = name === undefined ? undefined : CLOCKS.get(name.toLowerCase())
    if (clock === undefined) {
      text += tokens[at].text
      continue
    }
    if (tokens[at + 1]?.text !== '(') throw refusal(`the name of the function ${name} cannot be an argument`)
    const end = ends[at + 1] ?? to
    // Arguments may call functions, too.
    text += clock(fixed(tokens, ends, { from: at + 2, to: end }, ms), ms)
    at = end
  }
  return text
}

/** The function that the token names: in a call, as an argument of a function such as arrayMap, or without brackets. */
function functionAt(tokens: readonly SqlToken[], at: number): string | undefined {
  const { name } = tokens[at]
  if (name.length !== 1) return undefined
  if (tokens[at + 1]?.text === '(' || OTHER_CLOCKS.test(name[0])) return name[0]
  const isArgument = tokens[at - 1]?.text === '(' && takesFunction(tokens[at - 2]?.name[0] ?? '')
  return isArgument && tokens[at + 1]?.text === ',' ? name[0] : undefined
}

/** The token that closes the bracket that each token opens. */
function closings(tokens: readonly SqlToken[]): readonly number[] {
  const ends: number[] = []
  const open: number[] = []
  for (const [at, { text }] of tokens.entries()) {
    if (text === '(') open.push(at)
    const from = text === ')' ? open.pop() : undefined
    if (from !== undefined) ends[from] = at
  }
  return ends
}

function refuse(name: string): void {
  if (OTHER_CLOCKS.test(name)) throw refusal(`${name} is not allowed in an alert: use now(), now64() or today()`)
  if (RANDOM.test(name)) throw refusal(`the function ${name} is not allowed in an alert, because its result is random`)
  if (UNSTABLE.test(name))
    throw refusal(
      `the function ${name} is not allowed in an alert, because the same rows may give another result; ` +
        'for quantiles use quantileExact',
    )
}

function listed(first: string, rest: string): string {
  return rest === '' ? first : `${first}, ${rest}`
}
