import type { Bar } from '../run/bars.ts'

/** The same step of two runs, or one that only one of them has. */
export interface StepPair<T> {
  readonly a?: T | undefined
  readonly b?: T | undefined
}

/** Later steps are not compared: the time grows with the square of their number. */
export const STEPS_MAX = 500

/** Steps with equal keys are the same: all model calls, child runs of one agent, otherwise steps of one kind and name. */
function keyOf({ kind, name, run }: Pick<Bar, 'kind' | 'name' | 'run'>): string {
  if (kind === 'model') return kind
  return kind === 'child' ? `${kind} ${run?.agent_id}` : `${kind} ${name}`
}

/**
 * The steps of two runs side by side in the order of both: by the longest common subsequence of their keys. The rest are
 * matched regardless of order, because concurrent steps start in no fixed order.
 */
export function alignSteps<T extends Pick<Bar, 'kind' | 'name' | 'run'>>(
  ofA: readonly T[],
  ofB: readonly T[],
): StepPair<T>[] {
  const a = ofA.slice(0, STEPS_MAX).map((step) => ({ step, key: keyOf(step) }))
  const b = ofB.slice(0, STEPS_MAX).map((step) => ({ step, key: keyOf(step) }))
  /** The length of the longest common subsequence from step i of `a` and step j of `b` on. */
  const common = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1))
  const at = (i: number, j: number) => common[i]?.[j] ?? 0
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--)
      common[i]![j] = a[i]!.key === b[j]!.key ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
  }
  const pairs: (StepPair<T> & { readonly key: string })[] = []
  let [i, j] = [0, 0]
  while (i < a.length || j < b.length) {
    const [one, other] = [a[i], b[j]]
    if (one !== undefined && one.key === other?.key) {
      pairs.push({ key: one.key, a: one.step, b: other.step })
      i++
      j++
    } else if (one !== undefined && (other === undefined || at(i + 1, j) >= at(i, j + 1))) {
      pairs.push({ key: one.key, a: one.step })
      i++
    } else {
      pairs.push({ key: other!.key, b: other!.step })
      j++
    }
  }
  return pairUnmatched(pairs)
}

/** Pairs each unmatched step with an equal unmatched step of the other run, at the place of the first. */
function pairUnmatched<T>(pairs: readonly (StepPair<T> & { readonly key: string })[]): StepPair<T>[] {
  const places = new Map<string, number[]>()
  const found: StepPair<T>[] = []
  for (const { key, a, b } of pairs) {
    const open = a === undefined || b === undefined ? (places.get(key) ?? []) : []
    const place = open.find((each) => (found[each]?.a === undefined) === (b === undefined))
    if (place !== undefined) {
      found[place] = { a: a ?? found[place]?.a, b: b ?? found[place]?.b }
      places.set(
        key,
        open.filter((each) => each !== place),
      )
    } else {
      if (a === undefined || b === undefined) places.set(key, [...open, found.length])
      found.push({ a, b })
    }
  }
  return found
}
