import { Kind, type Static, type TSchema, Type, TypeRegistry } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { t } from 'elysia'
import { codePoints } from '../code-points.ts'
import { parseDuration } from '../duration.ts'
import { RawJson } from '../raw-json.ts'
import { parseTimestamp } from '../timestamp.ts'

/**
 * Shared wire types. Every schema of the service is built from these, so that type, validation and documentation of an
 * identifier, a timestamp or a free-form object are the same everywhere.
 */

const COMPONENT = Symbol('component')
const UUID_PATTERN = '^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$'

/** Gives a schema its name in the OpenAPI document, and so in generated clients. */
export function Named<T extends TSchema>(name: string, schema: T): T {
  return { ...schema, [COMPONENT]: { name, schema } }
}

/** The name of a schema and the schema as it was named; undefined for a schema without a name, which is inlined. */
export function componentOf(schema: object): { readonly name: string; readonly schema: TSchema } | undefined {
  return (schema as { [COMPONENT]?: { name: string; schema: TSchema } })[COMPONENT]
}

/** The same schema with a description of what its value means here. */
export function Described<T extends TSchema>(schema: T, description: string): T {
  return { ...schema, description }
}

/** One of several words. Elysia fills a missing optional enum with its default, which is its first value unless stated. */
export function OneOf<const T extends Readonly<[string, ...string[]]>>(values: T, description?: string) {
  return t.UnionEnum(values, { default: undefined, ...(description !== undefined && { description }) })
}

/** A non-negative integer in a response. Elysia's `t.Integer` would be documented as `string | integer`. */
export function Count(description: string) {
  return Type.Integer({ minimum: 0, description })
}

/** Any RFC 9562 UUID, in either case. Convert it to lower case before it is stored or compared. */
export const Uuid = t.String({ pattern: UUID_PATTERN, format: 'uuid', title: 'uuid' })

/** A timestamp as we send it: `2026-01-31T09:30:00.123Z`. */
export const Timestamp = t.String({ title: 'timestamp', examples: ['2026-01-31T09:30:00.123Z'] })

TypeRegistry.Set('TimestampIn', (_schema, value) => typeof value === 'string' && parseTimestamp(value) !== null)

/** A timestamp from a caller: any RFC 3339. {@link parseTimestamp} never fails on it. */
export const TimestampIn = Type.Unsafe<string>({
  [Kind]: 'TimestampIn',
  type: 'string',
  format: 'date-time',
  title: 'timestamp',
})

TypeRegistry.Set('FreeForm', (_schema, value) => value instanceof RawJson && value.text.startsWith('{'))

/** Any JSON object from a caller, kept as sent (see {@link RawJson}). */
export const FreeForm = Type.Unsafe<RawJson>({ [Kind]: 'FreeForm', type: 'object', additionalProperties: true })

TypeRegistry.Set('JsonText', (_schema, value) => value instanceof RawJson)

/** JSON that is stored and sent as text; `schema` documents its content. */
export function JsonText(schema: object) {
  return Type.Unsafe<RawJson>({ ...schema, [Kind]: 'JsonText' })
}

interface TextOptions {
  /** In characters (code points), as RFC 8259 and JSON Schema count them: an emoji is one. */
  readonly minLength?: number
  readonly maxLength: number
  readonly description?: string
}

TypeRegistry.Set<TextOptions>(
  'Text',
  (schema, value) => typeof value === 'string' && textProblem(value, schema) === null,
)

/**
 * Text from a caller that Postgres can store: no NUL (Postgres refuses it), no lone surrogate (it has no UTF-8 form),
 * and a length within bounds.
 */
export function Text(options: TextOptions) {
  return Type.Unsafe<string>({ ...options, [Kind]: 'Text', type: 'string', title: 'text' })
}

/**
 * Why `text` is not a valid {@link Text} of these options, worded as the end of a validation message; null if it is.
 */
export function textProblem(text: string, { minLength = 0, maxLength }: TextOptions): string | null {
  // A code point is one or two units, so most texts need not be counted.
  if (text.length > maxLength && (text.length > 2 * maxLength || codePoints(text) > maxLength))
    return `expected at most ${maxLength} characters`
  if (text.length < 2 * minLength && codePoints(text) < minLength)
    return minLength === 1 ? 'expected at least 1 character' : `expected at least ${minLength} characters`
  if (text.includes('\0')) return 'expected text without the character U+0000'
  if (!text.isWellFormed()) return 'expected text without lone surrogates'
  return null
}

interface IntOptions {
  readonly minimum: number
  readonly maximum: number
  readonly description?: string
}

TypeRegistry.Set<IntOptions>('Int', (schema, value) => isIntWithin(value, schema))

/** An integer in a request body. Unlike Elysia's `t.Integer`, which also takes `"5"`, it takes only numbers. */
export function Int(options: IntOptions) {
  return Type.Unsafe<number>({ ...options, [Kind]: 'Int', type: 'integer' })
}

// A number too, because Elysia decodes a query twice.
TypeRegistry.Set<IntOptions>('QueryInt', (schema, value) =>
  isIntWithin(typeof value === 'string' && /^-?\d{1,15}$/.test(value) ? Number(value) : value, schema),
)

TypeRegistry.Set<IntOptions>('Duration', (schema, value) => {
  const seconds = typeof value === 'string' ? parseDuration(value) : null
  return seconds !== null && isIntWithin(seconds, schema)
})

/** A duration such as `30s`, `5m`, `1h` or `1d`, with bounds in seconds. */
export function Duration(options: IntOptions) {
  return Type.Unsafe<string>({ ...options, [Kind]: 'Duration', type: 'string', pattern: '^[1-9][0-9]{0,8}[smhd]$' })
}

/** A timestamp in a list's cursor, Unix milliseconds, within the range of every store. */
export const CursorMs = Int({ minimum: 0, maximum: Date.UTC(2300, 0, 1) - 1 })

/** An integer in a query string. Unlike with Elysia's coercion, the error names the parameter. */
export function QueryInt(options: IntOptions) {
  return Type.Transform(Type.Unsafe<number>({ ...options, [Kind]: 'QueryInt', type: 'integer' }))
    .Decode(Number)
    .Encode((value) => value)
}

const QUERY_LIST_MAX = 100

/** The values of a query parameter that is repeated, separated by commas, or both. Values that are not strings are kept. */
export function separated(value: unknown): unknown[] {
  return [value].flat().flatMap((each) => (typeof each === 'string' ? each.split(',') : [each]))
}

TypeRegistry.Set<TSchema>('QueryList', (schema, value) => {
  const given = separated(value)
  return given.length <= QUERY_LIST_MAX && given.every((each) => Value.Check(schema.items, each))
})

/**
 * A query parameter with several values, repeated or separated by commas (`?status=failed,timed_out`), so a value cannot
 * contain a comma. The route gets a list. With `t.Array`, Elysia answers a value that `items` refuses with an internal
 * error.
 */
export function QueryList<T extends TSchema>(items: T, description: string) {
  const schema = {
    [Kind]: 'QueryList',
    type: 'array',
    items,
    maxItems: QUERY_LIST_MAX,
    description,
    // Elysia keeps all values of a parameter that is marked so, instead of the last one. A single value stays text.
    elysiaMeta: 'ArrayQuery',
  }
  return Type.Transform(Type.Unsafe<Static<T>[]>(schema))
    .Decode((values) => separated(values) as Static<T>[])
    .Encode((values) => values)
}

function isIntWithin(value: unknown, { minimum, maximum }: IntOptions): boolean {
  return Number.isInteger(value) && (value as number) >= minimum && (value as number) <= maximum
}

/** The version of what can be edited, which is its `ETag` (docs/api.md#versions). */
export const Version = Type.Integer({
  minimum: 1,
  description: 'Begins at 1, and rises with each edit. Also the `ETag`.',
})

/** The last members of what can be edited. */
export const EDITED = {
  version: Version,
  created_at: Described(Timestamp, 'When it was created.'),
  updated_at: Described(Timestamp, 'When it was last edited.'),
}

export function Nullable<T extends TSchema>(schema: T) {
  return t.Union([schema, t.Null()])
}

/** A request body: unknown fields are refused, because a typo must not lose data silently. */
export function Body<T extends Record<string, TSchema>>(properties: T, options: { description?: string } = {}) {
  return t.Object(properties, { ...options, additionalProperties: false })
}

/** `?limit=&cursor=` of every list (docs/api.md#lists). */
const pageQuery = {
  limit: t.Optional(QueryInt({ minimum: 1, maximum: 200, description: 'Items per page; default 50.' })),
  cursor: t.Optional(t.String({ maxLength: 500, description: '`next_cursor` of the previous page.' })),
}

/** The query of a list. Conditions are combined with AND. */
export function ListQuery<T extends Record<string, TSchema>>(conditions: T) {
  return t.Object({ ...conditions, ...pageQuery }, { additionalProperties: false })
}

/** The query of a list without conditions. */
export const PageQuery = ListQuery({})
export type PageQuery = typeof PageQuery.static

/** The answer to a deletion: what was deleted. */
export function Deleted<T extends Record<string, TSchema>>(name: string, what: T) {
  return Named(name, t.Object({ ...what, deleted: t.Literal(true, { description: 'Always true.' }) }))
}

/** A page of a list: newest first unless `order` says otherwise, `next_cursor` null at the end. */
export function Page<T extends TSchema>(name: string, item: T, order = 'newest first') {
  const page = t.Object(
    {
      items: t.Array(item, { description: `The items of this page, ${order}.` }),
      next_cursor: Described(Nullable(t.String()), '`cursor` of the next page; null at the end of the list.'),
    },
    { description: `A page of a list, ${order}.` },
  )
  return Named(name, page)
}

/** The answer to a call that reports several. @param many as in `Events` @param one as in `event` */
export function Accepted(many: string, one: string, duplicates: string) {
  const seq = (which: string) => Nullable(Count(`Position of the ${which} ${one} stored; null when none was.`))
  const rejected = t.Object({
    index: Count(`Index of the ${one} in the request, from 0.`),
    message: t.String({ description: 'What is wrong with it.' }),
  })
  return Named(
    `${many}Accepted`,
    t.Object({
      accepted: Count(`${many} that were stored.`),
      duplicates: Count(duplicates),
      first_seq: seq('first'),
      last_seq: seq('last'),
      rejected: t.Optional(
        t.Array(rejected, { description: `With ?partial=true: the ${many.toLowerCase()} that were not stored.` }),
      ),
    }),
  )
}

/** `:agent_id` of a path. */
export const AgentParams = t.Object({ agent_id: Described(Uuid, 'The agent.') })
