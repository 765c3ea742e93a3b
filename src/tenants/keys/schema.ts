import { Type } from '@sinclair/typebox'
import { t } from 'elysia'
import { ApiError } from '../../base/errors.ts'
import {
  Body,
  Described,
  ListQuery,
  Named,
  Nullable,
  OneOf,
  Page,
  Text,
  Timestamp,
  TimestampIn,
  Uuid,
} from '../../base/http/schema.ts'
import { withIsoTimes } from '../../base/timestamp.ts'

/** The authenticated caller, which determines what a request may access. */
export interface Caller {
  readonly keyId: string
  readonly type: 'agent' | 'workspace'
  readonly workspaceId: string
  /** The partition of the journal that the workspace belongs to. */
  readonly partition: number
  /** The agent of an agent key, or the agent that a feed token is limited to; null for a workspace key. */
  readonly agentId: string | null
  /** The person who is signed in; `keyId` is then the id of the sign-in. Absent for keys and feed tokens. */
  readonly person?: Person
  /** The person who made the key, or the key of the feed token. Absent for keys that nobody signed in has made. */
  readonly makerId?: string
  /** What a feed token may write, on the routes that accept it. Absent for keys and people. */
  readonly scoring?: Scoring
}

/** The scores that a feed token may write (docs/feeds.md#feed-tokens). */
export interface Scoring {
  readonly runId: string
  readonly names: readonly string[]
  /** Whose scores they are: part of their ids. */
  readonly subject: string
  /** Whether the caller has named the subject, instead of getting a random one. */
  readonly isNamed: boolean
  /** The token's SHA-256, in base64. */
  readonly credential: string
}

/** The id that a record keeps of who acted: the key's, or the person's, which outlives the sign-in. */
export function actorOf({ keyId, person }: Caller): string {
  return person?.personId ?? keyId
}

/** The person who is responsible for a key that the caller makes; null if there is none. */
export function makerOf({ person, makerId }: Pick<Caller, 'person' | 'makerId'>): string | null {
  return person?.personId ?? makerId ?? null
}

/**
 * The agent whose records a list shows: the requested one, or that of an agent key; null: all agents.
 * @param requested the `agent_id` of the query
 * @param what the records, for the message
 * @throws ApiError FORBIDDEN if an agent key requests another agent
 */
export function agentToRead({ agentId }: Caller, requested: string | undefined, what: string): string | null {
  const wanted = requested?.toLowerCase() ?? agentId
  if (agentId === null || wanted === agentId) return wanted
  throw new ApiError('FORBIDDEN', `an agent key can only read ${what} of its own agent`, { reason: 'wrong_agent' })
}

/** What people who sign in may do, each role including those before it (docs/people.md). */
export const ROLES = ['viewer', 'approver', 'admin'] as const
export type Role = (typeof ROLES)[number]

/** @throws ApiError FORBIDDEN if the person has a lower role */
export function requireRole({ role }: Person, needed: Role): void {
  if (ROLES.indexOf(role) < ROLES.indexOf(needed))
    throw new ApiError('FORBIDDEN', `this needs the role ${needed}; you have the role ${role}`, {
      reason: 'role_too_low',
    })
}

/** A person who is signed in to one workspace. */
export interface Person {
  readonly personId: string
  readonly name: string | null
  readonly email: string | null
  readonly role: Role
}

/**
 * The client of a feed, authenticated by a key or a feed token, and how much of the workspace it may see
 * (docs/feeds.md#feed-tokens).
 */
export interface FeedCaller {
  /** The caller of the key, or of the feed token's key. Its `agentId` is limited as below. */
  readonly caller: Caller
  /** Sees this agent's activity only; null for every agent's. */
  readonly agentId: string | null
  /** Sees this run's activity only; null for every run's. */
  readonly runId: string | null
  /** Identifies the credential to `KeyRing.credentialState`. Not a secret: SHA-256, in base64. */
  readonly credential: string
  /** Whether it is a feed token. */
  readonly isToken: boolean
}

/** The state of an open feed's credential. `suspended`: the key is valid, but its workspace is suspended. */
export type CredentialState = 'valid' | 'invalid' | 'suspended'

const KEY_NAME_LENGTH_MAX = 200
const GRACE_SECONDS_MAX = 86_400

const KeyType = Named(
  'KeyType',
  OneOf(['agent', 'workspace'], 'An agent key acts for one agent; a workspace key manages the workspace.'),
)
const KeyStatus = Named('KeyStatus', OneOf(['active', 'revoked', 'expired'], 'Only an active key is accepted.'))

const KeyName = Text({ minLength: 1, maxLength: KEY_NAME_LENGTH_MAX, description: 'The display name of the key.' })
const ExpiresAt = Described(Nullable(TimestampIn), 'When the key expires; null or absent: never.')

/** Body of `POST /api/v1/keys`. */
export const CreateKey = Named('CreateKey', Body({ name: KeyName, expires_at: t.Optional(ExpiresAt) }))
export type CreateKey = typeof CreateKey.static

/** Body of `POST /api/v1/agents/:agent_id/keys` and of `POST /api/v1/workspaces/:workspace_id/keys`. */
export const CreateAgentKey = Named(
  'CreateAgentKey',
  Body({ name: t.Optional(Nullable(KeyName)), expires_at: t.Optional(ExpiresAt) }),
)
export type CreateAgentKey = typeof CreateAgentKey.static

/** Body of `POST /api/v1/keys/:key_id/revoke`: empty. */
export const RevokeKey = Named('RevokeKey', Body({}, { description: 'Empty: send `{}`.' }))

/** Body of `POST /api/v1/keys/:key_id/rotate`. */
export const RotateKey = Named(
  'RotateKey',
  Body({
    grace_seconds: t.Optional(
      // Not `t.Integer`, which also accepts numbers as strings.
      Type.Integer({
        minimum: 0,
        maximum: GRACE_SECONDS_MAX,
        default: 0,
        description: 'How long the old key stays valid, so that clients can switch to the new one.',
      }),
    ),
  }),
)
export type RotateKey = typeof RotateKey.static

const keyFields = {
  key_id: Described(Uuid, 'The id of the key.'),
  type: KeyType,
  name: Described(Nullable(t.String()), 'The display name of the key.'),
  agent_id: Described(Nullable(Uuid), 'The agent of an agent key; null for a workspace key.'),
  prefix: t.String({ description: 'The first characters of the key, to recognise it.' }),
  last4: t.String({ description: 'The last four characters of the key.' }),
  status: KeyStatus,
  created_at: Described(Timestamp, 'When the key was created.'),
  created_by: Described(
    Nullable(Uuid),
    'The person who made the key, or whose key made it; null if that is nobody who signed in.',
  ),
  created_by_name: Described(Nullable(t.String()), 'The name or e-mail address of that person.'),
  last_used_at: Described(
    Nullable(Timestamp),
    'When the key was last used, up to some seconds late; null: never used.',
  ),
  expires_at: Described(Nullable(Timestamp), 'When the key expires; null: never.'),
  revoked_at: Described(Nullable(Timestamp), 'When the key was revoked; null: it is not.'),
  replaced_by: Described(Nullable(Uuid), 'The key that replaced this one by rotation.'),
}

/** A key as it is listed, without its secret. */
export const KeyRecord = Named('Key', t.Object(keyFields, { description: 'A key, without its secret.' }))
export type KeyRecord = typeof KeyRecord.static

/** A new key, with its secret. */
export const NewKey = Named(
  'NewKey',
  t.Object(
    { ...keyFields, key: t.String({ description: 'The secret: shown only now and not stored.' }) },
    { description: 'A new key, with its secret.' },
  ),
)
export type NewKey = typeof NewKey.static

/** Query of `GET /api/v1/keys`. */
export const ListKeys = ListQuery({
  type: t.Optional(Described(KeyType, 'Keys of this type.')),
  agent_id: t.Optional(Described(Uuid, 'Keys of this agent.')),
  status: t.Optional(Described(KeyStatus, 'Keys with this status; by default all that are not revoked.')),
})
export type ListKeys = typeof ListKeys.static

export const KeyPage = Page('KeyPage', KeyRecord)

/** `:key_id` of a path. */
export const KeyParams = t.Object({ key_id: Described(Uuid, 'The id of the key.') })

/** A row of `api_keys`, without the hash. */
export interface KeyRow extends Omit<KeyRecord, 'status' | keyof KeyTimes>, KeyTimes {}

interface KeyTimes {
  readonly created_at: Date
  readonly last_used_at: Date | null
  readonly expires_at: Date | null
  readonly revoked_at: Date | null
}

/** @param now Unix milliseconds, to determine whether the key has expired */
export function toKeyRecord(row: KeyRow, now: number): KeyRecord {
  const status = row.revoked_at !== null ? 'revoked' : isExpired(row, now) ? 'expired' : 'active'
  return { ...withIsoTimes(row), status }
}

export function isExpired(row: Pick<KeyRow, 'expires_at'>, now: number): boolean {
  return row.expires_at !== null && row.expires_at.getTime() <= now
}
