import { isObject } from '../http/json-object.ts'
/**
 * Whether OpenAI takes a schema for structured outputs with `strict: true`: the root is an object, every object names all
 * its properties as required and allows no others, and no keyword is one that it does not know. A schema of other form
 * is sent with `strict: false`, which guides the model without binding it.
 */
export function isStrictSchema(schema: Record<string, unknown>): boolean {
  return schema.type === 'object' && isStrict(schema, DEPTH_MAX)
}

/** Levels of nesting that OpenAI takes, with a few to spare: it says itself when it is too many. */
const DEPTH_MAX = 16

const KEYWORDS = new Set([
  ...['$schema', '$ref', '$defs', 'definitions', 'title', 'description', 'type', 'enum', 'const', 'anyOf'],
  ...['properties', 'required', 'additionalProperties', 'items', 'minItems', 'maxItems'],
  ...['pattern', 'format', 'multipleOf', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'],
])
const FORMATS = new Set(['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uuid'])

function isStrict(schema: unknown, depth: number): boolean {
  if (!isObject(schema) || depth === 0) return false
  if (!Object.keys(schema).every((keyword) => KEYWORDS.has(keyword))) return false
  // A schema that says nothing admits anything, which is what strict mode is there to prevent.
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
