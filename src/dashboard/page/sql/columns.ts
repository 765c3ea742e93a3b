import type { Column } from '../data/api.ts'

/** What the type of a column says about its values. */

/** A value of a column of time, in Unix seconds; texts without a zone are in UTC. */
export function timeOf(value: unknown): number {
  const text = String(value).replace(' ', 'T')
  const hasZone = /(Z|[+-]\d\d:?\d\d)$/.test(text) || !text.includes('T')
  return Date.parse(hasZone ? text : `${text}Z`) / 1_000
}

export function isNumeric({ type }: Column): boolean {
  return /^(Nullable\()?(U?Int|Float|Decimal)/.test(type)
}

export function isTime({ type }: Column): boolean {
  return /^(Nullable\()?Date/.test(type)
}
