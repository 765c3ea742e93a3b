import { enumToOpenApi, nullToOpenApi } from '@elysiajs/openapi/openapi'
import type { TSchema } from '@sinclair/typebox'
import { componentOf } from '../base/http/schema.ts'

export type Json = Record<string, unknown>

/** The pattern that TypeBox writes for a record with any names. */
const ANY_NAME = '^(.*)$'
/** Titles that validation messages use. The document has formats instead. */
const OWN_TITLES: readonly unknown[] = ['uuid', 'timestamp', 'text']

/** Elysia's name for how it reads a parameter. */
const ELYSIA_MARK = 'elysiaMeta'

/** Collects the named schemas of the document while it is converted to plain JSON. */
export class SchemaComponents {
  private readonly found = new Map<string, TSchema>()
  private readonly schemas: Json = {}

  get all(): Json {
    return Object.fromEntries(Object.entries(this.schemas).sort(([a], [b]) => (a < b ? -1 : 1)))
  }

  /** Adds a component that no route's schema refers to. */
  add(name: string, schema: Json): void {
    this.schemas[name] = schema
  }

  /**
   * Converts a part of the document to plain JSON, with a reference for each named schema.
   * @throws Error when two schemas have one name
   */
  plain(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((item) => this.plain(item))
    if (typeof value !== 'object' || value === null) return value
    const component = componentOf(value)
    return component === undefined ? this.members(value as Json) : this.reference(component, value as Json)
  }

  private reference({ name, schema }: { name: string; schema: TSchema }, used: Json): Json {
    const known = this.found.get(name)
    if (known !== undefined && known !== schema) throw new Error(`two schemas are named ${name}`)
    if (known === undefined) {
      this.found.set(name, schema)
      this.schemas[name] = this.plain(nullToOpenApi(enumToOpenApi(schema), '3.1.0'))
    }
    const $ref = `#/components/schemas/${name}`
    // The generator has made `type: [that of the schema, 'null']` of a union with null.
    const isNullable = Array.isArray(used.type)
    const isSame = used.description === schema.description && !isNullable
    const described = isSame ? {} : { description: used.description }
    if (isNullable) return { anyOf: [{ $ref }, { type: 'null' }], ...described }
    return { $ref, ...described }
  }

  private members(value: Json): Json {
    const plain: Json = {}
    for (const [name, member] of Object.entries(value))
      if (member !== undefined && name !== ELYSIA_MARK) plain[name] = this.plain(member)
    return withRecords(withFormat(withNull(plain)))
  }
}

/** The generator merges an enum with null, but does not add null to its values. */
function withNull(schema: Json): Json {
  const { type, enum: values } = schema
  if (!Array.isArray(type) || !type.includes('null') || !Array.isArray(values) || values.includes(null)) return schema
  return { ...schema, enum: [...values, null] }
}

/** The schemas of answers have no `format` for timestamps, because the service would check it in every answer. */
function withFormat(schema: Json): Json {
  if (!OWN_TITLES.includes(schema.title)) return schema
  const { title, ...rest } = schema
  return title === 'timestamp' ? { ...rest, format: 'date-time' } : rest
}

/** TypeBox describes records by patterns of names, which client generators do not support. */
function withRecords(schema: Json): Json {
  const { patternProperties, ...rest } = schema
  const [only, ...others] = Object.entries((patternProperties ?? {}) as Json)
  if (only === undefined || others.length > 0) return schema
  const [pattern, additionalProperties] = only
  return { ...rest, ...(pattern !== ANY_NAME && { propertyNames: { pattern } }), additionalProperties }
}
