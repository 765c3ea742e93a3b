import { isObject } from '../../../base/json-object.ts'
import type { RawJson } from '../../../base/raw-json.ts'

type Schema = Record<string, unknown>

/** Keywords whose texts may make a schema one that cannot be compiled. */
const REFERENCE = /"\$(?!schema|comment|defs)/
/** References that can be checked without compiling the schema, which takes up to 0.1 s. */
const POINTER = /^#(?:\/[^%]*)?$/
const OTHER_REFERENCES = [
  '$anchor',
  '$dynamicRef',
  '$dynamicAnchor',
  '$recursiveRef',
  '$recursiveAnchor',
  '$vocabulary',
]

/**
 * The schema of an agent as clients see it: they may refuse the whole list of tools for one that they cannot compile, so that
 * only references into the schema itself are shown. Any other schema that the service accepts can be compiled.
 * @returns undefined for a schema that is not shown
 */
export function shownSchema(stored: RawJson | null): Schema | undefined {
  if (stored === null) return undefined
  const schema: Schema = { type: 'object', ...(stored.parse() as Schema) }
  if (REFERENCE.test(stored.text) && !isSelfContained(schema, schema)) return undefined
  return isObject(schema.properties) ? { ...schema, properties: withoutBooleans(schema.properties) } : schema
}

function isSelfContained(value: unknown, root: Schema): boolean {
  if (Array.isArray(value)) return value.every((each) => isSelfContained(each, root))
  if (!isObject(value)) return true
  if (typeof value.$ref === 'string' && !isSchemaAt(value.$ref, root)) return false
  // A schema within another one that has an address of its own is what its references begin with.
  if (typeof value.$id === 'string' && value !== root) return false
  if (OTHER_REFERENCES.some((name) => value[name] !== undefined && !isObject(value[name]))) return false
  return Object.values(value).every((each) => isSelfContained(each, root))
}

function isSchemaAt(reference: string, root: Schema): boolean {
  if (!POINTER.test(reference)) return false
  let found: unknown = root
  for (const part of reference.split('/').slice(1)) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return false
    found = (found as Schema)[name]
  }
  return isObject(found) || typeof found === 'boolean'
}

/** Clients of earlier revisions refuse the whole list for a property whose schema is `true` or `false`. */
function withoutBooleans(properties: Schema): Schema {
  const schemaOf = (value: unknown) => (typeof value !== 'boolean' ? value : value ? {} : { not: {} })
  return Object.fromEntries(Object.entries(properties).map(([name, value]) => [name, schemaOf(value)]))
}
