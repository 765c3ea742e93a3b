import { cpus } from 'node:os'
import type { BenchService } from './servers.ts'

const WINDOW_MS = 250
const BUSY_SHARE_MAX = 0.2
const BACKLOG_WAIT_MS = 30_000
const CPU_WAIT_MS = 2_000

/**
 * Waits until the service has loaded everything into SQL and the processors are idle, so that the backlog of one
 * measurement does not slow down the next. Gives up after a while: another process may keep the machine busy.
 */
export async function quiet(service: BenchService): Promise<void> {
  await drained(service, BACKLOG_WAIT_MS)
  await until(CPU_WAIT_MS, async () => (await busyShare()) < BUSY_SHARE_MAX)
}

/** Waits until the service has loaded everything into SQL, for some time at most. */
export function drained(service: BenchService, patienceMs: number): Promise<void> {
  return until(patienceMs, async () => (await service.backlog()) === 0)
}

/**
 * Measures two things in turn, each on a quiet machine.
 * @returns both figures of each round, without those of a first round, which only warms up the compilers
 */
export async function alternate<First, Second>(
  { service, rounds }: { readonly service: BenchService; readonly rounds: number },
  first: () => Promise<First>,
  second: () => Promise<Second>,
): Promise<[First, Second][]> {
  const pairs: [First, Second][] = []
  for (let round = 0; round <= rounds; round++) {
    await quiet(service)
    const one = await first()
    await quiet(service)
    pairs.push([one, await second()])
  }
  return pairs.slice(1)
}

async function until(patienceMs: number, check: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + patienceMs
  while (!(await check()) && performance.now() < deadline) await Bun.sleep(50)
}

/** The share of all processor time that was busy in the last moment. */
async function busyShare(): Promise<number> {
  const before = times()
  await Bun.sleep(WINDOW_MS)
  const after = times()
  return 1 - (after.idle - before.idle) / (after.all - before.all)
}

function times(): { idle: number; all: number } {
  let [idle, all] = [0, 0]
  for (const { times } of cpus()) {
    idle += times.idle
    all += Object.values(times).reduce((sum, time) => sum + time, 0)
  }
  return { idle, all }
}
