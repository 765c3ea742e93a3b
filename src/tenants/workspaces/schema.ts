import { t } from 'elysia'
import {
  Body,
  Count,
  Described,
  Int,
  Named,
  Nullable,
  OneOf,
  Page,
  Text,
  Timestamp,
  Uuid,
} from '../../base/http/schema.ts'
import { RETENTION_DAYS_MAX } from '../../base/limits.ts'
import type { RowOf } from '../../base/timestamp.ts'

/** The wire format of workspaces, which are the tenants (docs/workspaces.md). */

const NAME_LENGTH_MAX = 200
const WorkspaceName = Text({
  minLength: 1,
  maxLength: NAME_LENGTH_MAX,
  description: 'The display name of the workspace.',
})
const WorkspaceStatus = Named(
  'WorkspaceStatus',
  OneOf(['active', 'suspended'], 'Calls with keys of a suspended workspace get FORBIDDEN.'),
)

const RetentionDays = Nullable(
  Int({
    minimum: 1,
    maximum: RETENTION_DAYS_MAX,
    description: 'Days that events are kept; null: as EVENT_RETENTION_DAYS says. The shorter of the two applies.',
  }),
)

/** Body of `POST /api/v1/workspaces`. */
export const CreateWorkspace = Named('CreateWorkspace', Body({ name: WorkspaceName }))
export type CreateWorkspace = typeof CreateWorkspace.static

/** Body of `PATCH /api/v1/workspaces/:workspace_id`. */
export const EditWorkspace = Named(
  'EditWorkspace',
  Body({
    name: t.Optional(WorkspaceName),
    status: t.Optional(WorkspaceStatus),
    retention_days: t.Optional(RetentionDays),
  }),
)
export type EditWorkspace = typeof EditWorkspace.static

const workspaceFields = {
  workspace_id: Described(Uuid, 'The workspace.'),
  name: t.String({ description: 'The display name of the workspace.' }),
  status: WorkspaceStatus,
  retention_days: RetentionDays,
  created_at: Described(Timestamp, 'When it was created.'),
  updated_at: Described(Timestamp, 'When it was last edited.'),
}

export const WorkspaceRecord = Named('Workspace', t.Object(workspaceFields, { description: 'A tenant.' }))
export type WorkspaceRecord = typeof WorkspaceRecord.static

export const RecountBegun = Named(
  'RecountBegun',
  t.Object(
    {
      runs: Count(
        'All external runs, including those that keep their usage because some of their events have expired.',
      ),
    },
    { description: 'What is counted again.' },
  ),
)
export type RecountBegun = typeof RecountBegun.static

/** A workspace as its own keys see it. */
export const OwnWorkspace = Named(
  'OwnWorkspace',
  t.Object(
    {
      workspace_id: workspaceFields.workspace_id,
      name: workspaceFields.name,
      events_kept_days: Described(
        Nullable(Int({ minimum: 1, maximum: RETENTION_DAYS_MAX })),
        'Days that events are kept, by the setting of the workspace or of the service, whichever is shorter; null: without end.',
      ),
      created_at: workspaceFields.created_at,
    },
    { description: 'The workspace of the key.' },
  ),
)
export type OwnWorkspace = typeof OwnWorkspace.static

/** A workspace just created, with its first workspace key. */
export const NewWorkspace = Named(
  'NewWorkspace',
  t.Object(
    {
      ...workspaceFields,
      key_id: Described(Uuid, 'Its first workspace key.'),
      key: t.String({ description: 'The secret: shown only now and not stored.' }),
    },
    { description: 'A workspace just created, with its first key.' },
  ),
)
export type NewWorkspace = typeof NewWorkspace.static

export const WorkspacePage = Page('WorkspacePage', WorkspaceRecord)

/** `:workspace_id` of a path. */
export const WorkspaceParams = t.Object({ workspace_id: Described(Uuid, 'The workspace.') })

/** A row of `workspaces`. */
export type WorkspaceRow = RowOf<WorkspaceRecord>
