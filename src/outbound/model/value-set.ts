import { type StepBudget, spend } from './linear-regexp.ts'

const STEPS_PER_PRIMITIVE = 3
/** For an object, and one more for each character of its text. */
const STEPS_PER_OBJECT = 10

/** Values of JSON that are equal if they say the same, in whatever order their members are. */
export class ValueSet {
  /** Apart, because a string may be the text of an object. */
  private readonly primitives = new Set<unknown>()
  private readonly texts = new Set<unknown>()

  /** @param budget from which {@link add} and {@link has} take what they do */
  constructor(
    private readonly budget: StepBudget,
    values: readonly unknown[] = [],
  ) {
    for (const value of values) this.setOf(value).add(keyOf(value))
  }

  /** @returns false if it is there already @throws TooCostly */
  add(value: unknown): boolean {
    const set = this.setOf(value)
    const { size } = set
    return set.add(this.charged(value)).size > size
  }

  /** @throws TooCostly */
  has(value: unknown): boolean {
    return this.setOf(value).has(this.charged(value))
  }

  private setOf(value: unknown): Set<unknown> {
    return isPrimitive(value) ? this.primitives : this.texts
  }

  private charged(value: unknown): unknown {
    const key = keyOf(value)
    spend(this.budget, isPrimitive(value) ? STEPS_PER_PRIMITIVE : STEPS_PER_OBJECT + (key as string).length)
    return key
  }
}

function isPrimitive(value: unknown): boolean {
  return typeof value !== 'object' || value === null
}

function keyOf(value: unknown): unknown {
  return isPrimitive(value) ? value : canonical(value)
}

/** The same text for equal values. */
function canonical(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
  const members = value as Record<string, unknown>
  const named = Object.keys(members).sort()
  return `{${named.map((name) => `${JSON.stringify(name)}:${canonical(members[name])}`).join()}}`
}
