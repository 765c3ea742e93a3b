import { type Api, ApiFailure, type Listed } from './api.ts'
import type { Schemas } from './records.ts'

/** What hosted runs wait for. Kinds are named as in the URLs of the API and of this page. */
export type Pause = Approval | InputRequest
export type Approval = Schemas['Approval'] & { readonly kind: 'approvals'; readonly id: string }
export type InputRequest = Schemas['InputRequest'] & { readonly kind: 'input-requests'; readonly id: string }
export type PauseKind = Pause['kind']
/** A pause in the record of a run. */
export type PendingPause = Schemas['PendingPause']

type PauseRecord = Schemas['Approval'] | Schemas['InputRequest']

/** Per kind; there may be more. */
const LISTED_MAX = 50

/** Pauses with a status, newest first. @throws ApiFailure */
export async function listPauses(
  api: Api,
  where: { readonly status?: string; readonly run_id?: string },
  signal?: AbortSignal,
): Promise<{ readonly pauses: readonly Pause[]; readonly hasMore: boolean }> {
  const query = { ...where, limit: LISTED_MAX }
  const list = (kind: PauseKind) => api.get<Listed<PauseRecord>>(`/api/v1/${kind}`, query, signal)
  const [approvals, requests] = await Promise.all([list('approvals'), list('input-requests')])
  return {
    pauses: [...approvals.items, ...requests.items].map(pauseOf).sort(newestFirst),
    hasMore: approvals.next_cursor !== null || requests.next_cursor !== null,
  }
}

/** Null if it does not exist: links are shared and may be outdated. @throws ApiFailure */
export async function readPause(api: Api, kind: PauseKind, id: string): Promise<Pause | null> {
  try {
    return pauseOf(await api.get(`/api/v1/${kind}/${id}`))
  } catch (error) {
    if (error instanceof ApiFailure && error.code === 'NOT_FOUND') return null
    throw error
  }
}

export function newestFirst(a: Pause, b: Pause): number {
  return b.created_at.localeCompare(a.created_at) || b.id.localeCompare(a.id)
}

/** The link to the form that decides it. */
export function hrefOfPause(kind: PauseKind, id: string): string {
  return `#/waiting/${kind}/${id}`
}

export function kindOfPending({ type }: Pick<PendingPause, 'type'>): PauseKind {
  return type === 'approval' ? 'approvals' : 'input-requests'
}

export function isPauseKind(text: string | undefined): text is PauseKind {
  return text === 'approvals' || text === 'input-requests'
}

function pauseOf(record: PauseRecord): Pause {
  return 'approval_id' in record
    ? { ...record, kind: 'approvals', id: record.approval_id }
    : { ...record, kind: 'input-requests', id: record.request_id }
}
