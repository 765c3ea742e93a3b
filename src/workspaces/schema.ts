import { t } from 'elysia'
import { Body, Int, Nullable, Page, PageQuery, Text, Timestamp, Uuid } from '../http/schema.ts'

/** What of a workspace, the tenant, goes over the wire (docs/specification.md#workspaces). */

const NAME_LENGTH_MAX = 200
/** A hundred years. */
export const RETENTION_DAYS_MAX = 36_500

const WorkspaceName = Text({ minLength: 1, maxLength: NAME_LENGTH_MAX })
/** Elysia would fill a missing optional choice with its first word, hence the explicit default. */
const WorkspaceStatus = t.UnionEnum(['active', 'suspended'], {
  default: undefined,
  description: 'The keys of a suspended workspace answer FORBIDDEN.',
})

const RetentionDays = Nullable(
  Int({
    minimum: 1,
    maximum: RETENTION_DAYS_MAX,
    description:
      'Days that events are kept; null for as long as EVENT_RETENTION_DAYS says. The shorter of the two counts.',
  }),
)

/** Body of `POST /api/v1/workspaces`. */
export const CreateWorkspace = Body({ name: WorkspaceName })
export type CreateWorkspace = typeof CreateWorkspace.static

/** Body of `PATCH /api/v1/workspaces/:workspaceId`. */
export const EditWorkspace = Body({
  name: t.Optional(WorkspaceName),
  status: t.Optional(WorkspaceStatus),
  retention_days: t.Optional(RetentionDays),
})
export type EditWorkspace = typeof EditWorkspace.static

const workspaceFields = {
  workspace_id: Uuid,
  name: t.String(),
  status: WorkspaceStatus,
  retention_days: RetentionDays,
  created_at: Timestamp,
  updated_at: Timestamp,
}

export const WorkspaceRecord = t.Object(workspaceFields)
export type WorkspaceRecord = typeof WorkspaceRecord.static

/** A workspace just made, with its first workspace key. */
export const NewWorkspace = t.Object({
  ...workspaceFields,
  key_id: Uuid,
  key: t.String({ description: 'The key itself: shown this once, stored nowhere.' }),
})
export type NewWorkspace = typeof NewWorkspace.static

/** Query of `GET /api/v1/workspaces`. */
export const ListWorkspaces = t.Object(PageQuery, { additionalProperties: false })
export type ListWorkspaces = typeof ListWorkspaces.static

export const WorkspacePage = Page(WorkspaceRecord)
export type WorkspacePage = typeof WorkspacePage.static

/** `:workspaceId` of a path. */
export const WorkspaceParams = t.Object({ workspaceId: Uuid })

/** A row of `workspaces`. */
export interface WorkspaceRow extends Omit<WorkspaceRecord, 'created_at' | 'updated_at'> {
  readonly created_at: Date
  readonly updated_at: Date
}

export function toWorkspaceRecord(row: WorkspaceRow): WorkspaceRecord {
  return { ...row, created_at: row.created_at.toISOString(), updated_at: row.updated_at.toISOString() }
}
