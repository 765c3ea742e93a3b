import { Kind, type TSchema, Type, TypeRegistry } from '@sinclair/typebox'
import { t } from 'elysia'
import { RawJson } from './raw-json.ts'

/**
 * Shared wire types. Every schema of the service is built from these, so that type, validation and documentation of an
 * identifier, a timestamp or a free-form object are the same everywhere.
 */

const UUID_PATTERN = '^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$'

/** Any RFC 9562 UUID, in either case. Lower it with {@link lowerUuid} before it is stored or compared. */
export const Uuid = t.String({ pattern: UUID_PATTERN, format: 'uuid', title: 'uuid' })

/** A timestamp as we send it: `2026-01-31T09:30:00.123Z`. */
export const Timestamp = t.String({ title: 'timestamp', examples: ['2026-01-31T09:30:00.123Z'] })

TypeRegistry.Set('FreeForm', (_schema, value) => value instanceof RawJson && value.text.startsWith('{'))

/** Any JSON object of the caller's, kept as sent (see {@link RawJson}). */
export const FreeForm = Type.Unsafe<RawJson>({ [Kind]: 'FreeForm', type: 'object', additionalProperties: true })

/** Text of a caller's that Postgres keeps: no NUL (Postgres refuses it), whole code points only. */
export function Text(options: { minLength?: number; maxLength: number; description?: string }) {
  return t.String({ ...options, title: 'text' })
}

export function Nullable<T extends TSchema>(schema: T) {
  return t.Union([schema, t.Null()])
}

/** A request body: unknown fields are refused, because a typo must not lose data silently. */
export function Body<T extends Record<string, TSchema>>(properties: T, options: { description?: string } = {}) {
  return t.Object(properties, { ...options, additionalProperties: false })
}

/** `?limit=&cursor=` of every list (contract section 1). */
export const PageQuery = {
  limit: t.Optional(t.Integer({ minimum: 1, maximum: 200, description: 'Items on a page; 50 unless given.' })),
  cursor: t.Optional(t.String({ maxLength: 500, description: '`next_cursor` of the page before.' })),
}

/** A page of a list: newest first, `next_cursor` null at the end. */
export function Page<T extends TSchema>(item: T) {
  return t.Object({ items: t.Array(item), next_cursor: Nullable(t.String()) })
}
