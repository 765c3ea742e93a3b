import Ajv, {
  _,
  type CodeKeywordDefinition,
  type ErrorObject,
  type KeywordCxt,
  type Options,
  type ValidateFunction,
} from 'ajv'
import Ajv2019 from 'ajv/dist/2019.js'
import Ajv2020 from 'ajv/dist/2020.js'
import { LRUCache } from 'lru-cache'
import { shortened } from '../../base/code-points.ts'
import { hasMoreValues, JSON_VALUES_MAX } from '../../base/http/json-scan.ts'
import { shown } from '../../base/http/validation-message.ts'
import { isDeeper, isObject } from '../../base/json-object.ts'
import { inexactIn } from './exact-json.ts'
import { linearRegExp, PatternUnsupported, type StepBudget, spend, TooCostly } from './linear-regexp.ts'
import { ValueSet } from './value-set.ts'

export type SchemaChecks = ReturnType<typeof createSchemaChecks>

interface SchemaProblem {
  readonly problem: string
}

/** A compiled schema, or why it cannot be compiled. */
type Check = Compiled | { readonly broken: string }

interface Compiled {
  /** The memory that it takes, about. */
  readonly bytes: number
  problemIn(value: unknown, root: string): string | undefined
}

/** Compiled schemas that are cached, and the memory that they may take. */
const SCHEMAS_KEPT = 1_000
const KEPT_BYTES_MAX = 128 << 20
/** Of a compiled schema, as measured. */
const BYTES_PER_SCHEMA = 40_000
const BYTES_PER_KEYWORD = 600
const BYTES_PER_STATE = 64
/** A schema is serialized for each check. */
export const SCHEMA_LENGTH_MAX = 64 * 1024
/** Compiling takes about 60 µs per keyword and blocks the event loop. */
const SCHEMA_KEYWORDS_MAX = 1_000
/** Compiling a pattern takes longer than other keywords. */
const KEYWORDS_PER_PATTERN = 2
/** Keywords whose values are not compiled. */
const PLAIN_KEYWORDS = new Set(['title', 'description', '$comment', 'default', 'examples', 'enum', 'const'])
/** For a larger schema only the first error is reported: listing all takes compiling it once more. */
const LISTED_KEYWORDS_MAX = SCHEMA_KEYWORDS_MAX / 4
/** States of all patterns of a schema together: each takes about 100 ns to compile. */
const STATES_MAX = 20_000
const SCHEMA_DEPTH_MAX = 128
/** A value that is nested deeper cannot be written again. */
const VALUE_DEPTH_MAX = 1_000
/** For longer texts only the first error is reported: a list of all could become huge. */
const LISTED_LENGTH_MAX = 64 * 1024
const FINDINGS_MAX = 5
const PROBLEM_LENGTH_MAX = 600
/** Step budget of one check: about 25 ms, several times more on a busy machine. */
const STEPS_MAX = 1_250_000
/** An error takes that much longer than the check that finds it. */
const STEPS_PER_ERROR = 10
/** A recursive reference can multiply the work with each level of the value. */
const STEPS_PER_REF = 100
const TOO_COSTLY = 'it is too long to be checked against its schema'
const TOO_DEEP = 'it is nested too deeply'

/**
 * Checks values against JSON Schemas (docs/hosted-agents.md: `output_schema`, `input_schema`, `parameters` of
 * tools). One per process, to cache compiled schemas. Schemas are isolated from each other.
 */
export function createSchemaChecks() {
  const checks = new LRUCache<string, Check>({
    max: SCHEMAS_KEPT,
    maxSize: KEPT_BYTES_MAX,
    sizeCalculation: (check, text) => text.length + ('broken' in check ? 1 : check.bytes),
  })

  function checkFor(schema: Record<string, unknown>): Check {
    const text = JSON.stringify(schema)
    let check = checks.get(text)
    if (check === undefined) {
      check = tooLarge(schema, text) ?? compile(schema)
      checks.set(text, check)
    }
    return check
  }

  function problemOf(schema: Record<string, unknown>, value: unknown, length: number, root = ''): string | undefined {
    const check = checkFor(schema)
    if ('broken' in check) return unusable(check.broken)
    const first = check.problemIn(value, root)
    if (first === undefined || length > LISTED_LENGTH_MAX) return first
    if (keywordsOf(schema) > LISTED_KEYWORDS_MAX) return first
    const thorough = compile(schema, { allErrors: true })
    return ('broken' in thorough ? undefined : thorough.problemIn(value, root)) ?? first
  }

  return {
    /** Why a schema cannot be used, whatever the text; undefined if it can. */
    schemaProblem(schema: Record<string, unknown>): string | undefined {
      const check = checkFor(schema)
      return 'broken' in check ? unusable(check.broken) : undefined
    },
    /**
     * @param text an answer of a model: JSON, alone or in a code block
     * @returns the value, or a message that lets the model repair it: paths and expectations, a few hundred characters
     */
    checkOutput(schema: Record<string, unknown>, text: string): { readonly value: unknown } | SchemaProblem {
      const read = readJson(unfenced(text))
      if ('problem' in read) return read
      // The output of a run is an object (docs/hosted-agents.md#outcomes), even if the schema would allow another type.
      const problem = problemOf(schema, read.value, text.length) ?? objectProblem(read.value)
      return problem === undefined ? read : { problem }
    },
    /**
     * @param text the input of a run: a JSON object
     * @returns what does not match, each with its place, as in `input.items[3].price: must be number`
     */
    inputProblem(schema: Record<string, unknown>, text: string): string | undefined {
      const read = readJson(text)
      return 'problem' in read ? rooted(read.problem, 'input') : problemOf(schema, read.value, text.length, 'input')
    },
    /**
     * A value that cannot be passed to a tool exactly is a problem, whatever the schema says.
     * @param text arguments of a tool call as the model wrote them; empty text means no arguments
     */
    checkArguments(
      schema: Record<string, unknown>,
      text: string,
    ): { readonly value: Record<string, unknown> } | SchemaProblem {
      const read = text.trim() === '' ? { value: {} } : readJson(text)
      if ('problem' in read) return read
      const { value } = read
      const problem = objectProblem(value) ?? inexactProblem(text) ?? problemOf(schema, value, text.length)
      return problem === undefined ? { value: value as Record<string, unknown> } : { problem }
    },
  }
}

function inexactProblem(text: string): string | undefined {
  const inexact = inexactIn(text)
  return inexact && shortened(`${inexact.path}: ${inexact.problem}`, PROBLEM_LENGTH_MAX)
}

function objectProblem(value: unknown): string | undefined {
  return isObject(value) ? undefined : `expected a JSON object; got ${shown(value)}`
}

function tooLarge(schema: Record<string, unknown>, text: string): { readonly broken: string } | undefined {
  if (text.length > SCHEMA_LENGTH_MAX) return { broken: `it is longer than ${SCHEMA_LENGTH_MAX} characters` }
  if (isDeeper(schema, SCHEMA_DEPTH_MAX)) return { broken: `it is nested deeper than ${SCHEMA_DEPTH_MAX} levels` }
  if (keywordsOf(schema) > SCHEMA_KEYWORDS_MAX)
    return { broken: `it has more than ${SCHEMA_KEYWORDS_MAX} keywords and properties; a pattern counts twice` }
  return undefined
}

/** How much there is to compile: keywords, names of properties, and subschemas in arrays, at any depth. */
function keywordsOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  let count = 0
  if (Array.isArray(value)) {
    for (const item of value) if (typeof item !== 'string') count += 1 + keywordsOf(item)
    return count
  }
  for (const [name, inner] of Object.entries(value))
    if (!PLAIN_KEYWORDS.has(name) || isObject(inner)) count += weightOf(name, inner) + keywordsOf(inner)
  return count
}

function weightOf(name: string, value: unknown): number {
  if (name === 'pattern') return KEYWORDS_PER_PATTERN
  return name === 'patternProperties' && isObject(value) ? Object.keys(value).length : 1
}

function readJson(text: string): { readonly value: unknown } | SchemaProblem {
  try {
    if (hasMoreValues(text, JSON_VALUES_MAX)) return { problem: `expected at most ${JSON_VALUES_MAX} values` }
    const value: unknown = JSON.parse(text)
    return isDeeper(value, VALUE_DEPTH_MAX) ? { problem: TOO_DEEP } : { value }
  } catch (error) {
    return { problem: shortened(`expected JSON and nothing else; ${(error as Error).message}`, PROBLEM_LENGTH_MAX) }
  }
}

/** Models often put JSON into a code block, whatever the prompt says. */
function unfenced(text: string): string {
  const trimmed = text.trim()
  const end = trimmed.indexOf('\n')
  if (end < 0 || !/^```(json)?\s*$/i.test(trimmed.slice(0, end)) || !trimmed.endsWith('```')) return trimmed
  return trimmed.slice(end, -3)
}

/**
 * Compiles the schema in a compiler of its own: its `$id` cannot collide with another tenant's, and a `$ref` can only
 * refer to the schema itself. Nothing is fetched.
 */
function compile(schema: Record<string, unknown>, { allErrors = false } = {}): Check {
  const budget: StepBudget = { left: 0 }
  let broken: string | undefined
  for (const Compiler of compilersFor(schema)) {
    const states = { left: STATES_MAX }
    try {
      const compiler = new Compiler(optionsOf(budget, states, allErrors))
      hardenKeywords(compiler, budget, allErrors)
      const validate = compiler.compile(schema)
      // The validator would return a promise, which is always truthy.
      if ('$async' in validate) return { broken: '"$async" is not supported' }
      const used = STATES_MAX - states.left
      return {
        bytes: BYTES_PER_SCHEMA + keywordsOf(schema) * BYTES_PER_KEYWORD + used * BYTES_PER_STATE,
        problemIn(value, root) {
          budget.left = STEPS_MAX
          return problemIn(validate, value, root)
        },
      }
    } catch (error) {
      broken ??= plain((error as Error).message)
    }
  }
  return { broken: broken ?? 'it cannot be compiled' }
}

/** The compiler of the draft that the schema names; otherwise the newest, or 2019-09 if `items` is an array. */
function compilersFor(schema: Record<string, unknown>) {
  const { $schema } = schema
  if (typeof $schema === 'string' && /draft-0[4-7]/.test($schema)) return [Ajv]
  if (typeof $schema === 'string' && $schema.includes('2019-09')) return [Ajv2019]
  return JSON.stringify(schema).includes('"items":[') ? [Ajv2020, Ajv2019] : [Ajv2020]
}

function optionsOf(budget: StepBudget, states: StepBudget, allErrors: boolean): Options {
  // Optimizing the generated code costs more time than it saves, far more for large schemas.
  const code = {
    optimize: false,
    regExp: Object.assign((pattern: string) => patternOf(pattern, budget, states), { code: '' }),
  }
  return {
    code,
    allErrors,
    // Unknown keywords and formats are annotations, as the drafts require.
    strict: false,
    validateFormats: false,
    // Compiling detects a malformed schema; checking it first would double the cost.
    validateSchema: false,
    logger: false,
    // `{"properties": {"constructor": …}}` means a property of that name, not the inherited one.
    ownProperties: true,
  }
}

/** How many keywords a check evaluates for each item or member of a value, at most: those of its schema. */
const forEach = (value: unknown, weight: number) => sizeOf(value) * weight * 2
const perCharacter = (value: unknown) => (value as string).length / 8
const perMember = (value: unknown) => sizeOf(value) * 2
/** In steps, what keywords take whose work grows with the value. @param weight keywords of the schema in it, and one */
const COSTS = new Map<string, (value: unknown, weight: number) => number>([
  ...['items', 'additionalItems', 'contains', 'unevaluatedItems'].map((name) => [name, forEach] as const),
  ...['additionalProperties', 'patternProperties', 'propertyNames', 'unevaluatedProperties'].map(
    (name) => [name, forEach] as const,
  ),
  ...['minLength', 'maxLength'].map((name) => [name, perCharacter] as const),
  ...['minProperties', 'maxProperties'].map((name) => [name, perMember] as const),
  ...['$ref', '$dynamicRef', '$recursiveRef'].map((name) => [name, () => STEPS_PER_REF] as const),
  ['multipleOf', () => 5],
])

function sizeOf(value: unknown): number {
  return Array.isArray(value) ? value.length : Object.keys(value as object).length
}

/**
 * Bounds the keywords with which a small schema and a small text could block the process for hours: they take from the budget
 * what they are about to do.
 */
function hardenKeywords(compiler: Ajv, budget: StepBudget, allErrors: boolean): void {
  const costs = new Map(COSTS)
  // Where all errors are listed, each name that is missing is one.
  if (allErrors) for (const name of ['required', 'dependentRequired']) costs.set(name, (_value, weight) => weight)
  const factor = allErrors ? STEPS_PER_ERROR : 1
  for (const [keyword, costOf] of costs) {
    const chargesByWeight = new Map<number, (value: unknown) => void>()
    changeKeyword(compiler, keyword, (code) => (context, name) => {
      const weight = 1 + (costOf === forEach ? keywordsOf(context.schema) : namesIn(context.schema))
      const charge = chargesByWeight.getOrInsertComputed(
        weight,
        () => (value) => spend(budget, costOf(value, weight) * factor),
      )
      context.gen.code(calling(context, charge))
      code(context, name)
    })
  }
  // Ajv's own implementations compare every pair of values, and call methods that a value has, such as `valueOf`.
  const pass = (context: KeywordCxt, values: readonly unknown[]) => {
    const allowed = new ValueSet(budget, values)
    context.pass(calling(context, (value) => allowed.has(value)))
  }
  changeKeyword(compiler, 'enum', (code) => (context, name) => {
    if (context.schema.length === 0) code(context, name)
    else pass(context, context.schema)
  })
  changeKeyword(compiler, 'const', (code) => (context, name) => {
    if (typeof context.schema !== 'object') code(context, name)
    else pass(context, [context.schema])
  })
  compiler.removeKeyword('uniqueItems')
  compiler.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    validate: (isOn: boolean, items: unknown[]) => {
      const seen = new ValueSet(budget)
      return !isOn || items.every((item) => seen.add(item))
    },
    error: { message: 'must NOT have duplicate items' },
  })
}

type KeywordCode = CodeKeywordDefinition['code']

/** Replaces what generates the code of a keyword, if the draft has it. */
function changeKeyword(compiler: Ajv, keyword: string, changed: (code: KeywordCode) => KeywordCode): void {
  const rule = compiler.RULES.all[keyword]
  if (typeof rule !== 'object') return
  const definition = rule.definition as CodeKeywordDefinition
  rule.definition = { ...definition, code: changed(definition.code) } as typeof rule.definition
}

/** The code of a call with the value that is checked. */
function calling({ gen, data }: KeywordCxt, work: (value: unknown) => unknown) {
  return _`${gen.scopeValue('func', { ref: work })}(${data})`
}

/** How many names `required` or `dependentRequired` has. */
function namesIn(schema: unknown): number {
  if (Array.isArray(schema)) return schema.length
  return isObject(schema) ? Object.values(schema).reduce<number>((sum, names) => sum + namesIn(names), 0) : 0
}

function patternOf(pattern: string, budget: StepBudget, states: StepBudget) {
  try {
    // The compiler distinguishes patterns by their text.
    return Object.assign(linearRegExp(pattern, budget, states), { toString: () => pattern })
  } catch (error) {
    if (!(error instanceof PatternUnsupported)) throw error
    throw new Error(`the pattern ${shown(pattern)} uses ${error.message}, which is not supported`)
  }
}

function problemIn(validate: ValidateFunction, value: unknown, root: string): string | undefined {
  try {
    if (validate(value)) return undefined
  } catch (error) {
    if (error instanceof TooCostly) return rooted(TOO_COSTLY, root)
    // Stack overflow: a recursive schema with a deeply nested value.
    if (error instanceof RangeError) return rooted(TOO_DEEP, root)
    throw error
  }
  const findings = [...new Set((validate.errors ?? []).map((error) => sentence(error, root)))]
  const rest = findings.length - FINDINGS_MAX
  const text = findings.slice(0, FINDINGS_MAX).join('; ')
  return shortened(rest > 0 ? `${text}; and ${rest} more` : text, PROBLEM_LENGTH_MAX)
}

/** For example `items[3].price: must be number`. */
function sentence({ instancePath, keyword, message = 'is not valid', params }: ErrorObject, root: string): string {
  const place = instancePath
    .split('/')
    .slice(1)
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((segment) => (/^\d+$/.test(segment) ? `[${segment}]` : `.${segment}`))
    .join('')
  const path = root === '' ? place.replace(/^\./, '') : `${root}${place}`
  return `${path === '' ? 'the value' : path}: ${message}${detail(keyword, params)}`
}

function rooted(problem: string, root: string): string {
  return root === '' ? problem : `${root}: ${problem}`
}

/** Details that Ajv's message omits. */
function detail(keyword: string, params: Record<string, unknown>): string {
  if (keyword === 'enum') return ` ${shortened(JSON.stringify(params.allowedValues), 200)}`
  if (keyword === 'const') return ` ${shortened(JSON.stringify(params.allowedValue), 200)}`
  const extra = params.additionalProperty ?? params.unevaluatedProperty
  return extra === undefined ? '' : ` (${shown(extra)})`
}

function unusable(why: string): string {
  return shortened(`the schema cannot be used: ${why}`, PROBLEM_LENGTH_MAX)
}

/** Removes the identifier that the compiler invents for schemas without one. */
function plain(message: string): string {
  return message.replace(/ from id (#|$)/, '').trim()
}
