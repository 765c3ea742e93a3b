import { createLog } from '../../src/log.ts'

/** Random choices that can be made again: the seed is printed, and taken from the environment variable SEED. */
export interface Random {
  readonly seed: number
  /** In [0, 1). */
  next(): number
  /** An integer in [min, max]. */
  int(min: number, max: number): number
  bool(probability?: number): boolean
  pick<T>(from: readonly T[]): T
  bytes(length: number): Uint8Array
}

/** `name` says whose seed is printed. */
export function seededRandom(
  name: string,
  seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 32)),
): Random {
  createLog('info').info(`${name}: to repeat, set SEED=${seed}`)
  let state = seed >>> 0
  // Mulberry32: short, and good enough to choose test cases.
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let x = state
    x = Math.imul(x ^ (x >>> 15), x | 1)
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61)
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32
  }
  const int = (min: number, max: number) => min + Math.floor(next() * (max - min + 1))
  return {
    seed,
    next,
    int,
    bool: (probability = 0.5) => next() < probability,
    pick: (from) => from[int(0, from.length - 1)] as (typeof from)[number],
    bytes: (length) => Uint8Array.from({ length }, () => int(0, 255)),
  }
}
