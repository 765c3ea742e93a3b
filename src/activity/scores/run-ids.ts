import { isSameUuid, UUID_BYTES, uuidEnd } from './texts.ts'

/** The runs that the scores of a body name, each with an index. */
export class RunIds {
  /** In lower case, in order of their indexes. */
  readonly list: string[] = []
  private readonly indexOf = new Map<string, number>()
  /** By {@link keyAt}: the index of a run with that key. Most lookups need no string. */
  private readonly indexOfKey = new Map<number, number>()
  /** Where the id of each run was first read. */
  private readonly firstAt: number[] = []
  private last = 0

  constructor(private readonly text: Buffer) {}

  clear(): void {
    this.list.length = 0
    this.firstAt.length = 0
    this.indexOf.clear()
    this.indexOfKey.clear()
    this.last = 0
  }

  /** The index of a run whose id was read before, in the same case, at `at`; -1 for any other text. */
  known(at: number): number {
    const { text, firstAt } = this
    if (firstAt.length === 0) return -1
    if (isSameUuid(text, firstAt[this.last], at)) return this.last
    const index = this.indexOfKey.get(keyAt(text, at))
    if (index === undefined || !isSameUuid(text, firstAt[index], at)) return -1
    this.last = index
    return index
  }

  /** The index of the run whose id is the string between these offsets, quotes included; -1 if it is no UUID. */
  add(at: number, end: number): number {
    const idEnd = uuidEnd(this.text, at, end)
    if (idEnd < 0) return -1
    const runId = this.text.toString('latin1', at + 1, idEnd).toLowerCase()
    let index = this.indexOf.get(runId)
    if (index === undefined) {
      index = this.list.push(runId) - 1
      this.indexOf.set(runId, index)
      this.firstAt.push(at + 1)
      this.indexOfKey.set(keyAt(this.text, at + 1), index)
    }
    return index
  }
}

/** A hash of the second half of a UUID, which differs most between UUIDs. */
function keyAt(text: Buffer, at: number): number {
  let key = 0
  for (let i = at + UUID_BYTES / 2; i < at + UUID_BYTES; i++) key = (Math.imul(key, 31) + text[i]) | 0
  return key
}
