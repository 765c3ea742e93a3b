import { Kind, type TSchema } from '@sinclair/typebox'
import { ValueErrorType } from '@sinclair/typebox/errors'
import { Value } from '@sinclair/typebox/value'
import { distance } from 'fastest-levenshtein'
import { formatDuration } from '../duration.ts'
import { PROBLEMS_MAX, type Problem } from '../errors.ts'
import { isObject } from '../json-object.ts'
import { lookup } from '../lookup.ts'
import { RawJson } from '../raw-json.ts'
import { separated, textProblem } from './schema.ts'

/** A part of a request (or a response) that its schema refuses. */
export interface ValidationFailure {
  /** Which part. */
  readonly type: string
  /** Where it is, if it is not a whole part: `tools[1]`. */
  readonly at?: string
  /** The whole part, as it was checked. */
  readonly value: unknown
  /** What TypeBox finds; read only as far as needed. */
  readonly findings: Iterable<Finding>
}

interface Finding {
  readonly type: ValueErrorType
  readonly schema: TSchema
  /** JSON pointer. */
  readonly path: string
  readonly value: unknown
  /** For a union: the errors of each variant. */
  readonly errors?: readonly Iterable<Finding>[]
}

/** More findings than problems: some repeat others. The rest of a value in which everything is wrong is not looked at. */
const FINDINGS_MAX = 5 * PROBLEMS_MAX
const SHOWN_CHARACTERS_MAX = 80
/** Prefix of a field's path, per part of the request. Fields of the body have none. */
const PREFIX_OF = lookup<string>({
  body: '',
  query: 'query',
  params: 'path',
  headers: 'header',
  cookie: 'cookie',
})
/** Variants that Elysia adds to numbers and booleans of a query string, whose values are all text. */
const COERCED_FORMATS = new Set(['integer', 'numeric', 'boolean', 'date', 'ObjectString', 'ArrayString'])

/**
 * What is wrong with a request: for each mistake the field, what was expected, and the actual value, such as
 * `events[3].level` and `expected one of debug, info, warn, error; got "warning"` (docs/api.md#validation-messages).
 * Shows at most 80 characters of a value and {@link PROBLEMS_MAX} mistakes, so a 10 MiB body costs no more than a small one.
 */
export function validationProblems(failure: ValidationFailure): readonly Problem[] {
  const problems: Problem[] = []
  const pointers = new Set<string>()
  const params = new Set<string>()
  let found = 0
  for (const finding of failure.findings) {
    if (++found > FINDINGS_MAX) break
    // A missing field is also found to be no value of its type.
    if (pointers.has(finding.path)) continue
    pointers.add(finding.path)
    const problem = problemOf(failure, innermost(finding))
    if (params.has(problem.param)) continue
    params.add(problem.param)
    if (problems.push(problem) === PROBLEMS_MAX) break
  }
  return problems.length > 0 ? problems : [{ param: failure.type, message: 'not valid' }]
}

function problemOf(failure: ValidationFailure, finding: Finding): Problem {
  const param = pathOf(prefixOf(failure), finding.path)
  if (finding.type === ValueErrorType.ObjectAdditionalProperties) {
    const name = segmentsOf(finding.path).at(-1) ?? ''
    return { param, message: unknownField(name, Object.keys(finding.schema.properties ?? {})) }
  }
  if (finding.type === ValueErrorType.ObjectRequiredProperty)
    return misspelt(failure, finding) ?? { param, message: 'required' }
  return { param: param === '' ? failure.type : param, message: `${expectation(finding)}; got ${shown(finding.value)}` }
}

/** Descends into a repeated parameter, and into the variant of a union that the value was meant for, if only one fits. */
function innermost(finding: Finding): Finding {
  if (finding.schema[Kind] === 'QueryList') return refusedValue(finding)
  if (finding.type !== ValueErrorType.Union) return finding
  const variants: TSchema[] = finding.schema.anyOf ?? []
  const fitting = variants.flatMap((variant, index) => (isOfType(variant, finding.value) ? [index] : []))
  if (fitting.length !== 1 || variants[fitting[0]].const !== undefined) return finding
  for (const inner of finding.errors?.[fitting[0]] ?? []) return innermost(inner)
  return finding
}

/** The finding about the first refused value of a repeated parameter. */
function refusedValue(finding: Finding): Finding {
  const { items, maxItems } = finding.schema
  const values = separated(finding.value)
  if (values.length > maxItems) return finding
  for (const value of values) {
    const inner = Value.Errors(items, value).First()
    if (inner !== undefined) return { ...inner, path: finding.path }
  }
  return finding
}

function isOfType(schema: TSchema, value: unknown): boolean {
  if (COERCED_FORMATS.has(schema.format)) return false
  if (schema.type === 'object') return isObject(value)
  if (schema.type === 'array') return Array.isArray(value)
  if (schema.type === 'integer') return typeof value === 'number'
  if (schema.type === 'null') return value === null
  return schema.type === typeof value
}

function expectation({ schema, value }: Finding): string {
  if (schema[Kind] === 'Text' && typeof value === 'string')
    return textProblem(value, schema as unknown as { maxLength: number }) ?? 'expected text'
  return `expected ${described(schema)}`
}

/** What a schema accepts, in words. */
function described(schema: TSchema): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (Array.isArray(schema.enum)) return oneOf(schema.enum)
  if (Array.isArray(schema.anyOf)) return describedUnion(schema.anyOf)
  if (schema.title === 'uuid') return 'a UUID'
  if (schema.title === 'timestamp') return 'an RFC 3339 timestamp of the years 1900 to 2299'
  if (schema[Kind] === 'Duration')
    return `a duration from ${formatDuration(schema.minimum)} to ${formatDuration(schema.maximum)}, such as 30s, 5m or 1h`
  switch (schema.type) {
    case 'string':
      return `a string${range(schema.minLength, schema.maxLength, ' characters')}`
    case 'integer':
      return `an integer${range(schema.minimum, schema.maximum, '')}`
    case 'number':
      return `a number${range(schema.minimum, schema.maximum, '')}`
    case 'boolean':
      return 'true or false'
    case 'array':
      if (schema[Kind] === 'QueryList') return `at most ${schema.maxItems} values`
      return `an array${range(schema.minItems, schema.maxItems, ' items')}`
    case 'object':
      return schema[Kind] === 'FreeForm' ? 'a JSON object' : 'an object'
    default:
      return schema.type ?? 'another value'
  }
}

function describedUnion(variants: readonly TSchema[]): string {
  const meant = variants.filter((variant) => !COERCED_FORMATS.has(variant.format))
  const constants = meant.flatMap((variant) => (variant.const === undefined ? [] : [variant.const]))
  const others = meant.filter((variant) => variant.const === undefined).map(described)
  return [...(constants.length === 0 ? [] : [oneOf(constants)]), ...new Set(others)].join(' or ')
}

function oneOf(values: readonly unknown[]): string {
  return values.length === 1 ? JSON.stringify(values[0]) : `one of ${values.join(', ')}`
}

function range(min: number | undefined, max: number | undefined, unit: string): string {
  if (min !== undefined && max !== undefined) return ` ${unit === '' ? 'from' : 'of'} ${min} to ${max}${unit}`
  if (min !== undefined) return ` of at least ${min}${unit}`
  return max === undefined ? '' : ` of at most ${max}${unit}`
}

function prefixOf({ type, at }: ValidationFailure): string {
  return at ?? PREFIX_OF.get(type) ?? ''
}

/** `events[3].level` from `/events/3/level`. */
function pathOf(prefix: string, pointer: string): string {
  return segmentsOf(pointer).reduce(memberOf, prefix)
}

/** The path of a member. A name that is not an identifier is quoted. */
export function memberOf(path: string, name: string): string {
  if (/^\d+$/.test(name)) return `${path}[${name}]`
  if (/^[\w$-]{1,80}$/.test(name)) return path === '' ? name : `${path}.${name}`
  return `${path}[${shown(name)}]`
}

function segmentsOf(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/** A missing field is often present under a misspelt name; then the message points to that name. */
function misspelt(failure: ValidationFailure, finding: Finding): Problem | null {
  const segments = segmentsOf(finding.path)
  const missing = segments.pop() ?? ''
  let parent: unknown = failure.value
  for (const segment of segments) parent = (parent as Record<string, unknown> | undefined)?.[segment]
  if (typeof parent !== 'object' || parent === null || parent instanceof RawJson) return null
  for (const name in parent) {
    if (!isSimilar(name, missing)) continue
    const param = pathOf(prefixOf(failure), `${finding.path.slice(0, -missing.length)}${name}`)
    return { param, message: `unknown field; did you mean ${JSON.stringify(missing)}?` }
  }
  return null
}

/** What is wrong with a field that is none of the known ones. */
export function unknownField(name: string, known: readonly string[]): string {
  const meant = known.find((candidate) => isSimilar(name, candidate))
  if (meant !== undefined) return `unknown field; did you mean ${JSON.stringify(meant)}?`
  return `unknown field; expected ${known.length === 0 ? 'none' : `only ${known.join(', ')}`}`
}

/** At most two edits, swapped letters, or another notation (`runId`, `run-id`). Equal names are not similar. */
function isSimilar(name: string, candidate: string): boolean {
  if (name === candidate || Math.abs(name.length - candidate.length) > 2) return false
  if (plain(name) === plain(candidate) || sorted(name) === sorted(candidate)) return true
  return distance(name, candidate) <= (candidate.length < 5 ? 1 : 2)
}

function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[_-]/g, '')
}

function sorted(name: string): string {
  return [...name].sort().join('')
}

/** A value as a message shows it: the type of an object or array, the start of a long string. */
export function shown(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value instanceof RawJson) return value.text.startsWith('[') ? 'an array' : 'an object'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object' && value !== null) return 'an object'
  if (typeof value !== 'string') return String(value)
  const cut = value.length > SHOWN_CHARACTERS_MAX
  // Cutting may split a surrogate pair.
  const text = JSON.stringify((cut ? value.slice(0, SHOWN_CHARACTERS_MAX) : value).toWellFormed())
  return cut ? `${text}…` : text
}
