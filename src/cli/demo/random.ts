/** Pseudo-random choices. */
export type Random = ReturnType<typeof randomOf>

/** The same seed gives the same sequence. Mulberry32: short, and good enough for a simulation. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0
  return randomOf(() => {
    state = (state + 0x6d2b79f5) >>> 0
    let x = state
    x = Math.imul(x ^ (x >>> 15), x | 1)
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61)
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32
  })
}

/** Choices made of numbers in [0, 1). */
export function randomOf(next: () => number) {
  /** A whole number in [min, max]. */
  const int = (min: number, max: number) => min + Math.floor(next() * (max - min + 1))
  return {
    next,
    int,
    /** True with this probability. */
    chance: (probability: number) => next() < probability,
    pick: <T>(from: readonly T[]) => from[int(0, from.length - 1)] as T,
    /** Milliseconds, distributed like real latencies: never far below `typical`, occasionally a multiple of it. */
    latencyMs: (typical: number) => Math.round(typical * (0.6 - 0.5 * Math.log(1 - next()))),
  }
}
