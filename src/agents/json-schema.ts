import { invalid } from '../base/errors.ts'
import { isObject } from '../base/json-object.ts'
import { lookup } from '../base/lookup.ts'
import { shown } from '../http/validation-message.ts'

type Check = (value: unknown, path: string) => void

/** A schema with more cannot be used (`model/output-schema.ts`); each is compiled, which takes some microseconds. */
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

const schemaMap: Check = (value, path) => {
  if (!isObject(value)) throw expected('an object of schemas', value, path)
  for (const [name, item] of Object.entries(value)) schema(item, pathOf(path, name))
}

const patternMap: Check = (value, path) => {
  schemaMap(value, path)
  const patterns = Object.keys(value as object)
  if (patterns.length > PATTERNS_MAX)
    throw invalid(path, `expected at most ${PATTERNS_MAX} patterns; got ${patterns.length}`)
  for (const name of patterns) pattern(name, pathOf(path, name))
}

/** `dependencies` of older drafts: a schema or names of properties. */
const dependencyMap: Check = (value, path) => {
  if (!isObject(value)) throw expected('an object', value, path)
  for (const [name, item] of Object.entries(value))
    if (Array.isArray(item)) names(item, pathOf(path, name))
    else schema(item, pathOf(path, name))
}

const schemaOrSchemas: Check = (value, path) => (Array.isArray(value) ? schemas(value, path) : schema(value, path))

const typeNames: Check = (value, path) => {
  const given = Array.isArray(value) ? value : [value]
  const isRight = given.length > 0 && given.every((name) => TYPES.has(name)) && new Set(given).size === given.length
  if (!isRight) throw expected(`one or several of ${[...TYPES].join(', ')}`, value, path)
}

const names: Check = (value, path) => {
  const isRight =
    Array.isArray(value) && value.every((name) => typeof name === 'string') && new Set(value).size === value.length
  if (!isRight) throw expected('an array of different strings', value, path)
}

const namesMap: Check = (value, path) => {
  if (!isObject(value)) throw expected('an object', value, path)
  for (const [name, item] of Object.entries(value)) names(item, pathOf(path, name))
}

const values: Check = (value, path) => {
  if (!Array.isArray(value) || value.length === 0) throw expected('a non-empty array', value, path)
}

const text: Check = (value, path) => {
  if (typeof value !== 'string') throw expected('a string', value, path)
}

const flag: Check = (value, path) => {
  if (typeof value !== 'boolean') throw expected('true or false', value, path)
}

const amount: Check = (value, path) => {
  if (!Number.isFinite(value)) throw expected('a number', value, path)
}

const positive: Check = (value, path) => {
  if (!Number.isFinite(value) || (value as number) <= 0) throw expected('a number above 0', value, path)
}

const size: Check = (value, path) => {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw expected('an integer of at least 0', value, path)
}

const pattern: Check = (value, path) => {
  text(value, path)
  try {
    new RegExp(value as string, 'u')
  } catch {
    throw expected('a regular expression (ECMA-262)', value, path)
  }
}

const KEYWORDS = lookup<Check>({
  $ref: text,
  $dynamicRef: text,
  $anchor: text,
  $comment: text,
  $defs: schemaMap,
  definitions: schemaMap,
  title: text,
  description: text,
  format: text,
  type: typeNames,
  enum: values,
  allOf: schemas,
  anyOf: schemas,
  oneOf: schemas,
  not: schema,
  if: schema,
  // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema; no code awaits this table.
  then: schema,
  else: schema,
  properties: schemaMap,
  patternProperties: patternMap,
  additionalProperties: schema,
  unevaluatedProperties: schema,
  propertyNames: schema,
  dependentSchemas: schemaMap,
  dependentRequired: namesMap,
  dependencies: dependencyMap,
  required: names,
  minProperties: size,
  maxProperties: size,
  items: schemaOrSchemas,
  prefixItems: schemas,
  additionalItems: schema,
  unevaluatedItems: schema,
  contains: schema,
  minContains: size,
  maxContains: size,
  minItems: size,
  maxItems: size,
  uniqueItems: flag,
  minLength: size,
  maxLength: size,
  pattern,
  minimum: amount,
  maximum: amount,
  exclusiveMinimum: amount,
  exclusiveMaximum: amount,
  multipleOf: positive,
  deprecated: flag,
  readOnly: flag,
  writeOnly: flag,
})

function expected(what: string, value: unknown, path: string) {
  return invalid(path, `expected ${what}; got ${shown(value)}`)
}

function pathOf(path: string, name: string): string {
  return /^[\w$-]{1,80}$/.test(name) ? `${path}.${name}` : `${path}[${shown(name)}]`
}
