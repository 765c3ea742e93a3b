import type { Outcome, WorldName } from './world.ts'

/** One world, and what happens in it. */
export interface Case {
  readonly world: WorldName
  readonly seed: number
  /** How much happens. */
  readonly steps: number
  /** The numbers of faults that the seed draws, and that do not happen. */
  readonly without: readonly number[]
}

/** A case that has failed, as small as it became. */
export interface Story extends Case {
  /** The planted bug that it shows; without one, a bug of the code of its time. */
  readonly plant?: string
  readonly failed: readonly string[]
}

const TRIES_MAX = 400

/**
 * Takes away steps and faults as long as the case fails in the same way. What comes after a fault that is taken away is
 * another world, so each try is run, and kept only if fewer faults happen in it.
 */
export async function shrink(failing: Case, run: (tried: Case) => Promise<Outcome>): Promise<[Case, Outcome]> {
  let best = failing
  let outcome = await run(best)
  const shapes = new Set(outcome.problems.map(shapeOf))
  let tries = 0
  const attempt = async (tried: Case): Promise<boolean> => {
    if (tries++ >= TRIES_MAX) return false
    const found = await run(tried)
    const isSmaller = found.faults.length + tried.steps < outcome.faults.length + best.steps
    if (!isSmaller || !found.problems.some((problem) => shapes.has(shapeOf(problem)))) return false
    best = tried
    outcome = found
    return true
  }
  for (let before = Number.POSITIVE_INFINITY; sizeNow() < before && tries < TRIES_MAX; ) {
    before = sizeNow()
    for (let cut = best.steps >> 1; cut > 0; )
      if (cut >= best.steps || !(await attempt({ ...best, steps: best.steps - cut }))) cut >>= 1
    for (let size = (outcome.faults.length + 1) >> 1; size > 0; size >>= 1)
      // From the end, so that the numbers of those before stay.
      for (let end = outcome.faults.length; end > 0; end = Math.min(end, outcome.faults.length + size) - size) {
        const off = outcome.faults.slice(Math.max(0, end - size), end).map(({ number }) => number)
        await attempt({ ...best, without: [...best.without, ...off].sort((a, b) => a - b) })
      }
  }
  return [best, outcome]

  function sizeNow(): number {
    return best.steps + outcome.faults.length
  }
}

/** A problem without its numbers. */
function shapeOf(problem: string): string {
  return problem.replaceAll(/\d+/g, '#')
}
