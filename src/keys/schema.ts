import { Type } from '@sinclair/typebox'
import { t } from 'elysia'
import {
  Body,
  Described,
  Named,
  Nullable,
  Page,
  PageQuery,
  Text,
  Timestamp,
  TimestampIn,
  Uuid,
} from '../http/schema.ts'

/** The authenticated caller. It determines what a request may access. */
export interface Caller {
  readonly keyId: string
  readonly type: 'agent' | 'workspace'
  readonly workspaceId: string
  /** The one agent an agent key speaks for, or a feed token is limited to; null for a workspace key. */
  readonly agentId: string | null
}

/**
 * Who opens a feed, with a key or with a feed token, and how much of the workspace it may see
 * (docs/specification.md#feed-tokens).
 */
export interface FeedCaller {
  /**
   * Of the key, or of the feed token's key; `agentId` is narrowed as below, so that what judges callers judges this
   * one.
   */
  readonly caller: Caller
  /** Sees this agent's activity only; null for every agent's. */
  readonly agentId: string | null
  /** Sees this run's activity only; null for every run's. */
  readonly runId: string | null
  /** What `KeyRing.isAlive` takes for as long as the feed is open. Not a secret: SHA-256, in base64. */
  readonly credential: string
}

/**
 * Whether what an open feed came with is still good: `dead` ends it as a dead key does, `suspended` as a forbidden one.
 */
export type CredentialState = 'alive' | 'dead' | 'suspended'

/** What of a key goes over the wire (docs/specification.md#managing-keys). */

const KEY_NAME_LENGTH_MAX = 200
const GRACE_SECONDS_MAX = 86_400

/** A choice of words. Elysia would fill a missing optional one with the first word, hence the explicit default. */
const NO_DEFAULT = { default: undefined }
const KeyType = Named(
  'KeyType',
  t.UnionEnum(['agent', 'workspace'], {
    ...NO_DEFAULT,
    description: 'An agent key speaks for one agent; a workspace key manages everything.',
  }),
)
const KeyStatus = Named(
  'KeyStatus',
  t.UnionEnum(['active', 'revoked', 'expired'], { ...NO_DEFAULT, description: 'Only an active key is accepted.' }),
)

const KeyName = Text({ minLength: 1, maxLength: KEY_NAME_LENGTH_MAX, description: 'What people call the key.' })
const ExpiresAt = Described(Nullable(TimestampIn), 'When the key stops working; null or absent: never.')

/** Body of `POST /api/v1/keys`. */
export const CreateKey = Named('CreateKey', Body({ name: KeyName, expires_at: t.Optional(ExpiresAt) }))
export type CreateKey = typeof CreateKey.static

/** Body of `POST /api/v1/agents/:agentId/keys`. */
export const CreateAgentKey = Named(
  'CreateAgentKey',
  Body({ name: t.Optional(Nullable(KeyName)), expires_at: t.Optional(ExpiresAt) }),
)
export type CreateAgentKey = typeof CreateAgentKey.static

/** Body of `POST /api/v1/workspaces/:workspaceId/keys`. */
export const CreateOwnerKey = CreateAgentKey
export type CreateOwnerKey = typeof CreateOwnerKey.static

/** Body of `POST /api/v1/keys/:keyId/revoke`: nothing to say. */
export const RevokeKey = Named('RevokeKey', Body({}, { description: 'Nothing: send `{}`.' }))

/** Body of `POST /api/v1/keys/:keyId/rotate`. */
export const RotateKey = Named(
  'RotateKey',
  Body({
    grace_seconds: t.Optional(
      // Not `t.Integer`, which takes the text of a number too.
      Type.Integer({
        minimum: 0,
        maximum: GRACE_SECONDS_MAX,
        default: 0,
        description: 'How long the old key stays valid, so that its users can be moved over.',
      }),
    ),
  }),
)
export type RotateKey = typeof RotateKey.static

const keyFields = {
  key_id: Described(Uuid, 'The key.'),
  type: KeyType,
  name: Described(Nullable(t.String()), 'What people call the key.'),
  agent_id: Described(Nullable(Uuid), 'The one agent of an agent key; null for a workspace key.'),
  prefix: t.String({ description: 'The first characters of the key, to recognise it by.' }),
  last4: t.String({ description: 'Its last four.' }),
  status: KeyStatus,
  created_at: Described(Timestamp, 'When the key was made.'),
  last_used_at: Described(Nullable(Timestamp), 'Trails the last use by some seconds; null: never used.'),
  expires_at: Described(Nullable(Timestamp), 'When the key stops working; null: never.'),
  revoked_at: Described(Nullable(Timestamp), 'When it was revoked.'),
  replaced_by: Described(Nullable(Uuid), 'The key that rotation put in its place.'),
}

/** A key as it is listed: never the key itself. */
export const KeyRecord = Named('Key', t.Object(keyFields, { description: 'A key, without its secret.' }))
export type KeyRecord = typeof KeyRecord.static

/** A key just made. */
export const NewKey = Named(
  'NewKey',
  t.Object(
    { ...keyFields, key: t.String({ description: 'The key itself: shown this once, stored nowhere.' }) },
    { description: 'A key just made.' },
  ),
)
export type NewKey = typeof NewKey.static

/** Query of `GET /api/v1/keys`. Conditions are joined by AND. */
export const ListKeys = t.Object(
  {
    type: t.Optional(Described(KeyType, 'Keys of this type.')),
    agent_id: t.Optional(Described(Uuid, 'Keys of this agent.')),
    status: t.Optional(Described(KeyStatus, 'Keys of this status.')),
    ...PageQuery,
  },
  { additionalProperties: false },
)
export type ListKeys = typeof ListKeys.static

export const KeyPage = Page('KeyPage', KeyRecord)
export type KeyPage = typeof KeyPage.static

/** `:keyId` of a path. */
export const KeyParams = t.Object({ keyId: Described(Uuid, 'The key.') })

/** A row of `api_keys`, without the hash. */
export interface KeyRow {
  readonly key_id: string
  readonly type: Caller['type']
  readonly name: string | null
  readonly agent_id: string | null
  readonly prefix: string
  readonly last4: string
  readonly created_at: Date
  readonly last_used_at: Date | null
  readonly expires_at: Date | null
  readonly revoked_at: Date | null
  readonly replaced_by: string | null
}

/** @param now Unix milliseconds: whether a key has expired depends on it */
export function toKeyRecord(row: KeyRow, now: number): KeyRecord {
  return {
    ...row,
    status: row.revoked_at !== null ? 'revoked' : isExpired(row, now) ? 'expired' : 'active',
    created_at: row.created_at.toISOString(),
    last_used_at: row.last_used_at?.toISOString() ?? null,
    expires_at: row.expires_at?.toISOString() ?? null,
    revoked_at: row.revoked_at?.toISOString() ?? null,
  }
}

export function isExpired(row: Pick<KeyRow, 'expires_at'>, now: number): boolean {
  return row.expires_at !== null && row.expires_at.getTime() <= now
}
