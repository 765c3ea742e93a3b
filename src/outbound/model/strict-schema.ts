import { isObject } from '../../base/json-object.ts'

/** Slightly more levels of nesting than OpenAI accepts: beyond its own limit, its error says so. */
const DEPTH_MAX = 16

const KEYWORDS = new Set([
  ...['$schema', '$ref', '$defs', 'definitions', 'title', 'description', 'type', 'enum', 'const', 'anyOf'],
  ...['properties', 'required', 'additionalProperties', 'items', 'minItems', 'maxItems'],
  ...['pattern', 'format', 'multipleOf', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'],
])
const FORMATS = new Set(['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uuid'])

/**
 * Whether OpenAI accepts a schema for structured outputs with `strict: true`: the root is an object, every object lists
 * all its properties as required and allows no others, and all keywords are supported. Other schemas are sent with
 * `strict: false`, which guides the model without forcing it.
 */
export function isStrictSchema(schema: Record<string, unknown>): boolean {
  return schema.type === 'object' && isStrict(schema, DEPTH_MAX)
}

function isStrict(schema: unknown, depth: number): boolean {
  if (!isObject(schema) || depth === 0) return false
  if (!Object.keys(schema).every((keyword) => KEYWORDS.has(keyword))) return false
  // An empty schema allows any value, which strict mode exists to prevent.
  if (!['type', 'enum', 'const', 'anyOf', '$ref'].some((keyword) => keyword in schema)) return false
  if (schema.format !== undefined && !FORMATS.has(schema.format as string)) return false
  const types = Array.isArray(schema.type) ? schema.type : [schema.type]
  if ((types.includes('object') || schema.properties !== undefined) && !isClosed(schema)) return false
  if (types.includes('array') && schema.items === undefined) return false
  return innerSchemas(schema).every((inner) => isStrict(inner, depth - 1))
}

function isClosed({ additionalProperties, properties = {}, required = [] }: Record<string, unknown>): boolean {
  if (additionalProperties !== false || !isObject(properties) || !Array.isArray(required)) return false
  const names = Object.keys(properties)
  return names.length === required.length && names.every((name) => required.includes(name))
}

function innerSchemas(schema: Record<string, unknown>): unknown[] {
  const inner = [schema.properties, schema.$defs, schema.definitions].flatMap((named) => Object.values(named ?? {}))
  if (schema.items !== undefined) inner.push(schema.items)
  if (schema.anyOf !== undefined) inner.push(...(Array.isArray(schema.anyOf) ? schema.anyOf : [null]))
  return inner
}
