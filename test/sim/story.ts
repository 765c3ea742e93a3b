import type { WorldName } from './faults.ts'
import type { Outcome } from './world.ts'

/** One world, and what happens in it. */
export interface Case {
  readonly world: WorldName
  readonly seed: number
  /** How much happens. */
  readonly steps: number
  /** The names of faults and steps that the seed draws, and that do not happen. */
  readonly without: readonly string[]
}

/** A case that has failed, as small as it became. */
export interface Story extends Case {
  /** The planted bug that it shows; without one, a bug of the code of its time. */
  readonly plant?: string
  readonly failed: readonly string[]
}

const TRIES_MAX = 400

/**
 * Takes away steps and faults as long as the case fails in the same way. What is left draws the same as before, but what it
 * does may be another thing, so each try is run, and kept only if less happens in it.
 */
export async function shrink(failing: Case, run: (tried: Case) => Promise<Outcome>): Promise<[Case, Outcome]> {
  let best = failing
  let outcome = await run(best)
  const shapes = new Set(outcome.problems.map(shapeOf))
  let tries = 0
  const attempt = async (tried: Case): Promise<boolean> => {
    if (tries++ >= TRIES_MAX) return false
    const found = await run(tried)
    const isSmaller = found.happened.length < outcome.happened.length
    if (!isSmaller || !found.problems.some((problem) => shapes.has(shapeOf(problem)))) return false
    best = { ...tried, without: found.leftOut }
    outcome = found
    return true
  }
  for (let before = Number.POSITIVE_INFINITY; outcome.happened.length < before && tries < TRIES_MAX; ) {
    before = outcome.happened.length
    for (let size = (before + 1) >> 1; size > 0; size >>= 1)
      for (let end = outcome.happened.length; end > 0; end = Math.min(end, outcome.happened.length + size) - size) {
        const names = outcome.happened.slice(Math.max(0, end - size), end).map(({ name }) => name)
        await attempt({ ...best, without: [...best.without, ...names] })
      }
  }
  // What comes after the last step that is left is nothing, unless something happens while they would pass.
  const steps = best.steps - [...stepsFrom(best.steps)].findIndex((step) => !best.without.includes(step))
  const without = best.without.filter((name) => !/^step \d+$/.test(name) || Number(name.slice(5)) <= steps)
  const shorter = { ...best, steps, without }
  const found = await run(shorter)
  return found.problems.some((problem) => shapes.has(shapeOf(problem))) ? [shorter, found] : [best, outcome]
}

/** The names of the steps, the last one first. */
function* stepsFrom(last: number): Generator<string> {
  for (let step = last; step > 0; step--) yield `step ${step}`
}

/** A problem without its numbers. */
function shapeOf(problem: string): string {
  return problem.replaceAll(/\d+/g, '#')
}
