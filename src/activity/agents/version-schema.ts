import { Type } from '@sinclair/typebox'
import { t } from 'elysia'
import {
  AgentParams,
  Body,
  Described,
  Named,
  Nullable,
  Page,
  QueryInt,
  Timestamp,
  Uuid,
} from '../../base/http/schema.ts'
import type { RowOf } from '../../base/timestamp.ts'
import { AgentRecord } from './schema.ts'

/** The wire format of the versions of an agent (docs/agents.md#agent-versions). */

export const AGENT_VERSION_MAX = 2_147_483_647

/** Fields of a version besides its configuration. */
const summary = {
  agent_id: Described(Uuid, 'The agent.'),
  version: Type.Integer({ minimum: 1, description: 'The number of the version.' }),
  created_at: Described(Timestamp, 'When the version was made.'),
  created_by: Described(Nullable(Uuid), 'The key that made it, or the person who was signed in; null: the service.'),
  created_by_person: Described(
    Nullable(t.String()),
    'The e-mail address of the person who was signed in, or else their name; null for a key.',
  ),
  changes: t.Array(t.String(), {
    description: 'Names of the fields that differ from the version before; empty for the first.',
    examples: [['prompt', 'tools']],
  }),
  restored_from: Described(
    Nullable(Type.Integer({ minimum: 1 })),
    'The version whose configuration was restored; null: it was made by an edit.',
  ),
}

/** A version as it is listed. */
export const AgentVersionSummary = Named(
  'AgentVersionSummary',
  t.Object(summary, { description: 'A version of an agent, without its configuration.' }),
)
export type AgentVersionSummary = typeof AgentVersionSummary.static

const { agent_id, version, created_at, updated_at, ...configuration } = AgentRecord.properties

/** A version with the configuration of its runs. */
export const AgentVersion = Named(
  'AgentVersion',
  t.Object({ ...summary, ...configuration }, { description: 'A version of an agent, with its configuration.' }),
)
export type AgentVersion = typeof AgentVersion.static

export const AgentVersionPage = Page('AgentVersionPage', AgentVersionSummary)

/** `:agent_id` and `:version` of a path. */
export const VersionParams = t.Object({
  ...AgentParams.properties,
  version: QueryInt({ minimum: 1, maximum: AGENT_VERSION_MAX, description: 'The number of the version.' }),
})

/** Body of `POST /api/v1/agents/:agent_id/versions/:version/restore`: empty. */
export const RestoreVersion = Named('RestoreVersion', Body({}, { description: 'Empty: send `{}`.' }))

export type AgentVersionSummaryRow = RowOf<AgentVersionSummary>
export type AgentVersionRow = RowOf<AgentVersion>
