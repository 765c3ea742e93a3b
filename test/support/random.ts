import { createLog } from '../../src/base/log.ts'
import { createRandom } from '../../src/cli/demo/random.ts'

/** Reproducible random choices: the seed is printed, and read from the environment variable SEED. */
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

/** `name` is printed with the seed. */
export function seededRandom(
  name: string,
  seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 32)),
): Random {
  createLog('info').info(`${name}: to repeat, set SEED=${seed}`)
  const { next, int, chance, pick } = createRandom(seed)
  return {
    seed,
    next,
    int,
    bool: (probability = 0.5) => chance(probability),
    pick,
    bytes: (length) => Uint8Array.from({ length }, () => int(0, 255)),
  }
}
