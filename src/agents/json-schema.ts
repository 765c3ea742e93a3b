import { invalid } from '../http/errors.ts'
import { isObject } from '../http/json-object.ts'
import { shown } from '../http/validation-message.ts'

type Check = (value: unknown, place: string) => void

const TYPES = new Set(['null', 'boolean', 'object', 'array', 'number', 'integer', 'string'])

/**
 * Checks that `value` is a JSON Schema whose root describes an object. Checks every keyword of the drafts 2019-09 and
 * 2020-12 at any depth; unknown keywords are ignored, as the drafts require. Does not check whether `$ref`s resolve.
 *
 * Not Ajv's `validateSchema`: that accepts `enum: []` and malformed patterns, checks one draft only, and reports three errors
 * for a misspelt type.
 *
 * @param value a JSON object
 * @param place its path in the request
 * @throws ApiError VALIDATION_ERROR naming the keyword
 */
export function checkJsonSchema(value: Record<string, unknown>, place: string): void {
  schema(value, place)
  if (value.type !== undefined && value.type !== 'object')
    throw invalid(`${place}.type`, `expected "object" at the root of the schema; got ${shown(value.type)}`)
}

const schema: Check = (value, place) => {
  if (typeof value === 'boolean') return
  if (!isObject(value)) throw invalid(place, `expected a JSON Schema, an object or a boolean; got ${shown(value)}`)
  for (const [keyword, argument] of Object.entries(value))
    if (Object.hasOwn(KEYWORDS, keyword)) KEYWORDS[keyword]!(argument, `${place}.${keyword}`)
}

const schemas: Check = (value, place) => {
  if (!Array.isArray(value) || value.length === 0) throw expected('a non-empty array of schemas', value, place)
  value.forEach((item, index) => {
    schema(item, `${place}[${index}]`)
  })
}

const schemaMap: Check = (value, place) => {
  if (!isObject(value)) throw expected('an object of schemas', value, place)
  for (const [name, item] of Object.entries(value)) schema(item, placeOf(place, name))
}

const patternMap: Check = (value, place) => {
  schemaMap(value, place)
  for (const name of Object.keys(value as object)) pattern(name, placeOf(place, name))
}

/** As `dependencies` of older drafts: a schema or names of properties. */
const dependencyMap: Check = (value, place) => {
  if (!isObject(value)) throw expected('an object', value, place)
  for (const [name, item] of Object.entries(value))
    if (Array.isArray(item)) names(item, placeOf(place, name))
    else schema(item, placeOf(place, name))
}

const schemaOrSchemas: Check = (value, place) => (Array.isArray(value) ? schemas(value, place) : schema(value, place))

const typeNames: Check = (value, place) => {
  const given = Array.isArray(value) ? value : [value]
  const isRight = given.length > 0 && given.every((name) => TYPES.has(name)) && new Set(given).size === given.length
  if (!isRight) throw expected(`one or several of ${[...TYPES].join(', ')}`, value, place)
}

const names: Check = (value, place) => {
  const isRight =
    Array.isArray(value) && value.every((name) => typeof name === 'string') && new Set(value).size === value.length
  if (!isRight) throw expected('an array of different strings', value, place)
}

const namesMap: Check = (value, place) => {
  if (!isObject(value)) throw expected('an object', value, place)
  for (const [name, item] of Object.entries(value)) names(item, placeOf(place, name))
}

const values: Check = (value, place) => {
  if (!Array.isArray(value) || value.length === 0) throw expected('a non-empty array', value, place)
}

const text: Check = (value, place) => {
  if (typeof value !== 'string') throw expected('a string', value, place)
}

const flag: Check = (value, place) => {
  if (typeof value !== 'boolean') throw expected('true or false', value, place)
}

const amount: Check = (value, place) => {
  if (!Number.isFinite(value)) throw expected('a number', value, place)
}

const positive: Check = (value, place) => {
  if (!Number.isFinite(value) || (value as number) <= 0) throw expected('a number above 0', value, place)
}

const size: Check = (value, place) => {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw expected('an integer of at least 0', value, place)
}

const pattern: Check = (value, place) => {
  text(value, place)
  try {
    new RegExp(value as string, 'u')
  } catch {
    throw expected('a regular expression (ECMA-262)', value, place)
  }
}

const KEYWORDS: Record<string, Check> = {
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
  // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema; nobody awaits this table.
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
}

function expected(what: string, value: unknown, place: string) {
  return invalid(place, `expected ${what}; got ${shown(value)}`)
}

function placeOf(place: string, name: string): string {
  return /^[\w$-]{1,80}$/.test(name) ? `${place}.${name}` : `${place}[${shown(name)}]`
}
