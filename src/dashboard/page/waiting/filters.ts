import { addressState, oneOf, texts } from '../context/address-state.ts'
import type { PauseLine } from '../data/waiting.ts'

/** Outcomes that a person decided; the others came without a decision. */
const BY_PEOPLE = ['approved', 'rejected', 'answered'] as const
export const OUTCOMES = [...BY_PEOPLE, 'expired', 'cancelled'] as const

/** Which pauses a list shows, as the address has it. */
export const PAUSES = addressState({
  kind: oneOf(['', 'approval', 'input']),
  ...texts('agent', 'tool', 'user', 'session'),
  outcome: oneOf(['', ...OUTCOMES]),
  sort: oneOf(['newest', 'oldest']),
})
export type PauseFilter = typeof PAUSES.value

export function isFiltered({ sort: _sort, ...conditions }: PauseFilter): boolean {
  return Object.values(conditions).some((value) => value !== '')
}

/** Whether a pending pause belongs to the list. */
export function matches(line: PauseLine, { kind, agent, tool, user, session }: PauseFilter): boolean {
  return (
    (kind === '' || line.type === kind) &&
    (agent === '' || line.agent_id === agent) &&
    (tool === '' || line.tool === tool) &&
    (user === '' || line.external_user_id === user) &&
    (session === '' || line.session_id === session)
  )
}

/** The filter of decisions as a query of the API. */
export function decidedQueryOf({ kind, agent, tool, user, session, outcome, sort: order }: PauseFilter) {
  const statuses = OUTCOMES.filter((each) =>
    outcome === '' ? BY_PEOPLE.some((one) => one === each) : each === outcome,
  )
  const conditions = { type: kind, agent_id: agent, tool, external_user_id: user, session_id: session }
  const given = Object.entries(conditions).filter(([, value]) => value !== '')
  return new URLSearchParams([
    ['state', 'decided'],
    ['order', order],
    ...given,
    ...statuses.map((each) => ['status', each]),
  ])
}

/** A line of a list: a pause, or the head of several of one run. */
export type PauseRow =
  | { readonly type: 'pause'; readonly line: PauseLine; readonly isInGroup: boolean }
  | { readonly type: 'group'; readonly rootRunId: string; readonly lines: readonly PauseLine[] }

/**
 * Pauses of one run, or of the runs below it, stand together below a head, where the first of them is, in the order in which
 * they were requested.
 */
export function rowsOf(lines: readonly PauseLine[]): PauseRow[] {
  return [...Map.groupBy(lines, ({ root_run_id }) => root_run_id)].flatMap(([rootRunId, group]): PauseRow[] => {
    const isInGroup = group.length > 1
    const lines = group.toSorted((a, b) => (a.id < b.id ? -1 : 1))
    const rows = lines.map((line) => ({ type: 'pause' as const, line, isInGroup }))
    return isInGroup ? [{ type: 'group', rootRunId, lines }, ...rows] : rows
  })
}
