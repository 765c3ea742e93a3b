import { Named, OneOf } from '../../base/http/schema.ts'

/** Event levels in ascending order; their 1-based indexes are the values of the `level` enum in ClickHouse. */
export const LEVELS = ['debug', 'info', 'warn', 'error'] as const

/** The value of a level in the enum. @throws RangeError for anything else, because a row stored with it could not be read */
export function levelNumber(level: (typeof LEVELS)[number]): number {
  const index = LEVELS.indexOf(level)
  if (index < 0) throw new RangeError(`not a level: ${String(level)}`)
  return index + 1
}

export const EventLevel = Named('EventLevel', OneOf(LEVELS, 'How severe the event is.'))
