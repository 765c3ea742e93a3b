import type { Steps } from '../../base/http/shared-slice.ts'
import {
  type AnyValue,
  type Attributes,
  type DecodeBudget,
  fromDouble,
  TOO_DEEP,
  VALUE_DEPTH_MAX,
} from '../traces/telemetry.ts'

/** Turns values of `JSON.parse` into values of attributes: objects become maps, because callers choose their names. */

/** The members of an object. May be larger than one step. @throws ItemTooLarge, ApiError PAYLOAD_TOO_LARGE */
export function* readMembers(of: object, budget: DecodeBudget): Steps<Attributes> {
  const members: Attributes = new Map()
  for (const [name, value] of Object.entries(of)) {
    if (budget.isStepOver()) yield
    budget.take(1)
    budget.takeName(name.length)
    members.set(name, readValue(value, 0, budget))
  }
  return members
}

function readValue(value: unknown, depth: number, budget: DecodeBudget): AnyValue {
  budget.take(1)
  if (typeof value === 'number') return fromDouble(value)
  if (typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value !== 'object' || value === null) return null
  if (depth > VALUE_DEPTH_MAX) return TOO_DEEP
  if (Array.isArray(value)) return value.map((item) => readValue(item, depth + 1, budget))
  const members: Attributes = new Map()
  for (const [name, member] of Object.entries(value)) {
    budget.takeName(name.length)
    members.set(name, readValue(member, depth + 1, budget))
  }
  return members
}
