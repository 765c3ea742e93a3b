import { counted, percent } from '../../../base/format.ts'

export interface Change {
  readonly now: number
  readonly before: number
  /** A share from 0 to 1, which changes by percentage points. */
  readonly isRate?: boolean
}

const UNCHANGED_SHARE = 0.005
const UNCHANGED_POINTS = 0.05

/** `▲ 50%`, or `▼ 1.6 points` for a rate. Null without an earlier value: a rise from nothing has no percentage. */
export function changeOf({ now, before, isRate = false }: Change): string | null {
  if (!Number.isFinite(now) || !Number.isFinite(before) || (before === 0 && !isRate)) return null
  const change = isRate ? (now - before) * 100 : now / before - 1
  const size = Math.abs(change)
  if (size < (isRate ? UNCHANGED_POINTS : UNCHANGED_SHARE)) return 'unchanged'
  return `${change > 0 ? '▲' : '▼'} ${isRate ? counted(Number(size.toFixed(1)), 'point') : percent(size)}`
}
