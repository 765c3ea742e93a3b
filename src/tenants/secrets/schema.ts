import { Kind, Type, TypeRegistry } from '@sinclair/typebox'
import { t } from 'elysia'
import { Body, Deleted, Described, Named, Page, Timestamp, Version } from '../../base/http/schema.ts'
import { shown } from '../../base/http/validation-message.ts'
import type { RowOf } from '../../base/timestamp.ts'

/**
 * Secrets of a workspace, for headers of tools (docs/hosted-agents.md#secrets). Values are never returned.
 */

const SECRET_NAME = '^[A-Z][A-Z0-9_]{0,63}$'
const NAME_IN_WORDS = 'at most 64 capital letters, digits and "_", a letter first'
/** Redacting a shorter value would remove unrelated parts of a response. */
const VALUE_LENGTH_MIN = 4
const VALUE_LENGTH_MAX = 8_192

TypeRegistry.Set('JudgedLater', () => true)

/** Checked by {@link secretValueProblem}: a validation message of the schema would repeat the value. */
const SecretValue = Type.Unsafe<unknown>({
  [Kind]: 'JudgedLater',
  type: 'string',
  minLength: VALUE_LENGTH_MIN,
  maxLength: VALUE_LENGTH_MAX,
  description: 'A valid header value: one line, without leading or trailing spaces.',
})

/** Body of `PUT /api/v1/secrets/:name`. */
export const PutSecret = Named('PutSecret', Body({ value: SecretValue }))
export type PutSecret = typeof PutSecret.static

/**
 * `:name` of a path. Checked by {@link secretNameProblem}, whose message says more than that a pattern does not match.
 */
export const SecretParams = t.Object({
  name: Type.Unsafe<string>({
    [Kind]: 'JudgedLater',
    type: 'string',
    pattern: SECRET_NAME,
    description: NAME_IN_WORDS,
  }),
})

export const SecretRecord = Named(
  'Secret',
  t.Object(
    {
      name: t.String({ description: 'The NAME in `{{secret:NAME}}`.' }),
      version: Version,
      created_at: Described(Timestamp, 'When it was first set.'),
      updated_at: Described(Timestamp, 'When it was last set.'),
    },
    { description: 'A secret, without its value.' },
  ),
)
export type SecretRecord = typeof SecretRecord.static

export const SecretPage = Page('SecretPage', SecretRecord)

export const DeletedSecret = Deleted('DeletedSecret', {
  name: t.String({ description: 'The name of the deleted secret.' }),
})
export type DeletedSecret = typeof DeletedSecret.static

/** The listed columns of `secrets`. */
export type SecretRow = RowOf<SecretRecord>

/** Why a text is not a valid secret name; null if it is. */
export function secretNameProblem(name: string): string | null {
  return new RegExp(SECRET_NAME).test(name) ? null : `expected ${NAME_IN_WORDS}; got ${shown(name)}`
}

/** Why a value is not valid, without repeating it; null if it is. */
export function secretValueProblem(value: unknown): string | null {
  if (typeof value !== 'string') return 'expected a string'
  if (value.length < VALUE_LENGTH_MIN || value.length > VALUE_LENGTH_MAX)
    return `expected ${VALUE_LENGTH_MIN} to ${VALUE_LENGTH_MAX} characters; got ${value.length}`
  if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(value))
    return 'expected the value of an HTTP header: one line, of characters up to U+00FF'
  return value.trim() === value ? null : 'expected no space at the beginning or the end'
}
