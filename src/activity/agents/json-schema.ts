import { invalid } from '../../base/errors.ts'
import { shown } from '../../base/http/validation-message.ts'
import { isObject } from '../../base/json-object.ts'

type Check = (value: unknown, path: string) => void

/** A schema with more cannot be used (`outbound/model/output-schema.ts`); each is compiled, which takes some microseconds. */
const PATTERNS_MAX = 1_000

const TYPES = new Set(['null', 'boolean', 'object', 'array', 'number', 'integer', 'string'])

/**
 * Checks that `value` is a JSON Schema whose root describes an object. Checks every keyword of the drafts 2019-09 and
 * 2020-12 at any depth; unknown keywords are ignored, as the drafts require. Does not check whether `$ref`s resolve.
 *
 * Not Ajv's `validateSchema`: that accepts `enum: []` and malformed patterns, checks one draft only, and reports three errors
 * for a misspelt type.
 *
 * @param value a JSON object
 * @param path where the schema is in the request
 * @throws ApiError VALIDATION_ERROR naming the keyword
 */
export function checkJsonSchema(value: Record<string, unknown>, path: string): void {
  schema(value, path)
  if (value.type !== undefined && value.type !== 'object')
    throw invalid(`${path}.type`, `expected "object" at the root of the schema; got ${shown(value.type)}`)
}

const schema: Check = (value, path) => {
  if (typeof value === 'boolean') return
  if (!isObject(value)) throw invalid(path, `expected a JSON Schema, an object or a boolean; got ${shown(value)}`)
  for (const [keyword, argument] of Object.entries(value)) KEYWORDS.get(keyword)?.(argument, `${path}.${keyword}`)
}

const schemas: Check = (value, path) => {
  if (!Array.isArray(value) || value.length === 0) throw expected('a non-empty array of schemas', value, path)
  value.forEach((item, index) => {
    schema(item, `${path}[${index}]`)
  })
}

const schemaMap = mapOf('an object of schemas', schema)

const patternMap: Check = (value, path) => {
  const patterns = isObject(value) ? Object.keys(value) : []
  if (patterns.length > PATTERNS_MAX)
    throw invalid(path, `expected at most ${PATTERNS_MAX} patterns; got ${patterns.length}`)
  schemaMap(value, path)
  for (const name of patterns) pattern(name, pathOf(path, name))
}

/** `dependencies` of older drafts: a schema or names of properties. */
const dependencyMap = mapOf('an object', (item, path) => (Array.isArray(item) ? names(item, path) : schema(item, path)))

const schemaOrSchemas: Check = (value, path) => (Array.isArray(value) ? schemas(value, path) : schema(value, path))

const typeNames = rule(`one or several of ${[...TYPES].join(', ')}`, (value) => {
  const given = Array.isArray(value) ? value : [value]
  return given.length > 0 && given.every((name) => TYPES.has(name)) && new Set(given).size === given.length
})
const names = rule(
  'an array of different strings',
  (value) =>
    Array.isArray(value) && value.every((name) => typeof name === 'string') && new Set(value).size === value.length,
)
const values = rule('a non-empty array', (value) => Array.isArray(value) && value.length > 0)
const text = rule('a string', (value) => typeof value === 'string')
const flag = rule('true or false', (value) => typeof value === 'boolean')
const amount = rule('a number', Number.isFinite)
const positive = rule('a number above 0', (value) => Number.isFinite(value) && (value as number) > 0)
const size = rule('an integer of at least 0', (value) => Number.isSafeInteger(value) && (value as number) >= 0)
const namesMap = mapOf('an object', names)

const pattern: Check = (value, path) => {
  text(value, path)
  try {
    new RegExp(value as string, 'u')
  } catch {
    throw expected('a regular expression (ECMA-262)', value, path)
  }
}

const KEYWORDS = new Map<string, Check>([
  ...each(text, '$ref', '$dynamicRef', '$anchor', '$comment', 'title', 'description', 'format'),
  ...each(schemaMap, '$defs', 'definitions', 'properties', 'dependentSchemas'),
  ...each(schemas, 'allOf', 'anyOf', 'oneOf', 'prefixItems'),
  ...each(schema, 'not', 'if', 'then', 'else', 'contains', 'propertyNames'),
  ...each(schema, 'additionalProperties', 'unevaluatedProperties', 'additionalItems', 'unevaluatedItems'),
  ...each(schemaOrSchemas, 'items'),
  ...each(typeNames, 'type'),
  ...each(values, 'enum'),
  ...each(patternMap, 'patternProperties'),
  ...each(namesMap, 'dependentRequired'),
  ...each(dependencyMap, 'dependencies'),
  ...each(names, 'required'),
  ...each(pattern, 'pattern'),
  ...each(size, 'minProperties', 'maxProperties', 'minContains', 'maxContains'),
  ...each(size, 'minItems', 'maxItems', 'minLength', 'maxLength'),
  ...each(amount, 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'),
  ...each(positive, 'multipleOf'),
  ...each(flag, 'uniqueItems', 'deprecated', 'readOnly', 'writeOnly'),
])

function each(check: Check, ...keywords: readonly string[]): [string, Check][] {
  return keywords.map((keyword) => [keyword, check])
}

function rule(what: string, isRight: (value: unknown) => boolean): Check {
  return (value, path) => {
    if (!isRight(value)) throw expected(what, value, path)
  }
}

/** Checks every member of an object. */
function mapOf(what: string, check: Check): Check {
  return (value, path) => {
    if (!isObject(value)) throw expected(what, value, path)
    for (const [name, item] of Object.entries(value)) check(item, pathOf(path, name))
  }
}

function expected(what: string, value: unknown, path: string) {
  return invalid(path, `expected ${what}; got ${shown(value)}`)
}

function pathOf(path: string, name: string): string {
  return /^[\w$-]{1,80}$/.test(name) ? `${path}.${name}` : `${path}[${shown(name)}]`
}
