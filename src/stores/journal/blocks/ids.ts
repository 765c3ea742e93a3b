import { ulid } from 'ulid'
import { assert } from '../../../base/assert.ts'
import { type Bytes, putUuid } from '../../clickhouse/bytes.ts'
import type { RunRows } from '../journal.ts'

const RUNS_REMEMBERED = 10_000

interface KnownWords {
  readonly workspaceId: string
  readonly words: Uint32Array
}

/** By the id of the run alone, which takes a third of the time of a key of both ids. */
const wordsOfRun = new Map<string, KnownWords>()

/** The ids of a run as words (see {@link putUuid}): workspace, agent, run. Cached for active runs. */
export function runWords({ workspaceId, agentId, runId }: Omit<RunRows, 'rows'>): Uint32Array {
  const known = wordsOfRun.get(runId)
  if (known !== undefined && known.workspaceId === workspaceId) return known.words
  if (wordsOfRun.size >= RUNS_REMEMBERED) wordsOfRun.clear()
  const words = new Uint32Array(12)
  putUuid(workspaceId, words, 0)
  putUuid(agentId, words, 4)
  putUuid(runId, words, 8)
  wordsOfRun.set(runId, { workspaceId, words })
  return words
}

const ULID_CHARACTERS = 26
const TIME_CHARACTERS = 10
const ALPHABET = Buffer.from('0123456789ABCDEFGHJKMNPQRSTVWXYZ')
const FIRST = ALPHABET[0]
/** The successor of each character; the first follows the last. */
const NEXT = new Uint8Array(256)
ALPHABET.forEach((char, index) => {
  NEXT[char] = ALPHABET[(index + 1) % ALPHABET.length]
})
/** Passed to `ulid`, which would otherwise detect a random source for every id. */
const random = () => crypto.getRandomValues(new Uint32Array(1))[0] / 2 ** 32

/**
 * Writes ULIDs as `String` values directly into a column. Within a millisecond each is its predecessor plus one, as the
 * ULID specification defines for monotonic ids. `ulid`'s own factory does the same at forty times the cost.
 */
export class UlidWriter {
  /** The length byte, then the 26 characters of the last ULID written. */
  private readonly last = Buffer.alloc(1 + ULID_CHARACTERS, ULID_CHARACTERS)
  private time = 0

  /** Call before a series of writes. `now` is in Unix milliseconds; the time of ids never goes back. */
  tick(now: number): void {
    if (now <= this.time) return
    this.time = now
    this.last.write(ulid(now, random), 1)
  }

  write(target: Bytes): void {
    this.increment()
    target.reserve(this.last.length)
    this.last.copy(target.buffer, target.length)
    target.length += this.last.length
  }

  private increment(): void {
    for (let at = ULID_CHARACTERS; at > TIME_CHARACTERS; at--) {
      const next = NEXT[this.last[at]]
      this.last[at] = next
      if (next !== FIRST) return
    }
    // After 2^80 ids in a millisecond the specification continues in the next one.
    this.tick(this.time + 1)
  }
}

/** Adds rows of a run to the runs of a block: to the last entry if that is of the same run. */
export function addRun(runs: RunRows[], { workspaceId, agentId, runId }: Omit<RunRows, 'rows'>, rows: number): void {
  const last = runs[runs.length - 1]
  if (last?.runId === runId && last.workspaceId === workspaceId)
    runs[runs.length - 1] = { ...last, rows: last.rows + rows }
  else runs.push({ workspaceId, agentId, runId, rows })
}

/**
 * Fills the columns of workspace, agent and run of a block.
 * @param rows of the block: those of all `runs`
 */
export function fillRunIds(columns: readonly Bytes[], runs: readonly RunRows[], rows: number): void {
  for (const column of columns) column.clear()
  const targets = columns.map((column) => column.addWords(rows * 4))
  let at = 0
  for (const run of runs) {
    const words = runWords(run)
    const end = at + run.rows * 4
    for (let column = 0; column < targets.length; column++) fillWith(targets[column], at, end, words, column * 4)
    at = end
  }
  assert(at === rows * 4, 'every row belongs to a run')
}

/** Repeats four words. */
function fillWith(target: Uint32Array, from: number, to: number, words: Uint32Array, first: number): void {
  const a = words[first]
  const b = words[first + 1]
  const c = words[first + 2]
  const d = words[first + 3]
  for (let at = from; at < to; at += 4) {
    target[at] = a
    target[at + 1] = b
    target[at + 2] = c
    target[at + 3] = d
  }
}
