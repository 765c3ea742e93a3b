import { t } from 'elysia'
import { Named } from '../http/schema.ts'

/** Event levels in ascending order; their 1-based indexes are the values of the `level` enum in ClickHouse. */
export const LEVELS = ['debug', 'info', 'warn', 'error'] as const

/** The value of a level in the enum. @throws RangeError for a value that is no level: stored, it could not be read */
export function levelNumber(level: (typeof LEVELS)[number]): number {
  const index = LEVELS.indexOf(level)
  if (index < 0) throw new RangeError(`no level: ${String(level)}`)
  return index + 1
}

// Elysia would fill a missing optional enum with its first value, hence the explicit default.
export const EventLevel = Named(
  'EventLevel',
  t.UnionEnum(LEVELS, { default: undefined, description: 'How severe the event is.' }),
)
