import type { BatchScan } from './batch-scan.ts'
import type { Kind } from './event-types.ts'
import { COST_DETAILS, FIELD_COUNT, METADATA, USAGE, USAGE_DETAILS } from './fields.ts'
import { type JsonRange, ObjectUnion } from './json-objects.ts'

/** Memory that the arrays and objects of one merged state take, apart from its values. */
const OVERHEAD_BYTES = 600
/** The sources of values: what was merged before, and the batch. */
const BEFORE = 0
const BATCH = 1
/** United from both: metadata. */
const UNITED = 2

/**
 * The state of a trace or an observation, merged from the events about it: for each field the value of the event with the
 * latest timestamp. Of equal timestamps the one that was stored first wins, and within a batch the last one; so a repeated
 * batch changes nothing. Metadata is united, member by member. Values are ranges of the bytes in which they came.
 */
export class Merged {
  private readonly ranges: Int32Array
  private readonly sources: Uint8Array
  /** For each field, when the value that counts was sent, Unix milliseconds; 0 without a value. */
  readonly sentAt: Float64Array
  /** Whether a `-create` was among the events: an update may arrive before it. */
  isCreated = false
  /** What kind of observation it is; null for a trace, and until it is known. */
  kind: Kind | null = null
  /** Whether a value differs from what was merged before the batch. */
  isChanged = false
  private union: ObjectUnion | null = null
  /** The metadata of the union; null while it is not encoded. */
  private united: Buffer | null = null

  constructor(
    private before: Buffer | null = null,
    private batch: Buffer | null = null,
    from?: Merged,
  ) {
    this.ranges = from === undefined ? new Int32Array(2 * FIELD_COUNT) : from.ranges.slice()
    this.sources = new Uint8Array(FIELD_COUNT)
    this.sentAt = from === undefined ? new Float64Array(FIELD_COUNT) : from.sentAt.slice()
    if (from !== undefined) {
      this.isCreated = from.isCreated
      this.kind = from.kind
    }
  }

  /** A copy that values of a batch are merged into. Only for a state that owns its values ({@link owned}). */
  draft(batch: Buffer): Merged {
    return new Merged(this.before, batch, this)
  }

  /** The same state with a copy of its values, which does not keep the batch in memory. */
  owned(): Merged {
    let length = 0
    for (let field = 0; field < FIELD_COUNT; field++) length += this.end(field) - this.start(field)
    const values = Buffer.allocUnsafeSlow(length)
    const copy = new Merged(values, null, this)
    let at = 0
    for (let field = 0; field < FIELD_COUNT; field++) {
      const start = this.start(field)
      const size = this.end(field) - start
      if (size === 0) continue
      this.bufferOf(field).copy(values, at, start, start + size)
      copy.ranges[2 * field] = at
      copy.ranges[2 * field + 1] = at + size
      at += size
    }
    return copy
  }

  /** The same with values from elsewhere, JSON texts; null for none. */
  withTexts(texts: readonly (readonly [field: number, json: string | null])[], sentAt: number): Merged {
    const copy = this.draft(Buffer.from(`${texts.map(([, json]) => json ?? '').join('')}\0`))
    let at = 0
    for (const [field, json] of texts) {
      const size = json === null ? 0 : Buffer.byteLength(json)
      copy.ranges[2 * field] = size === 0 ? 0 : at
      copy.ranges[2 * field + 1] = size === 0 ? 0 : at + size
      copy.sources[field] = BATCH
      if (size > 0 && copy.sentAt[field] === 0) copy.sentAt[field] = sentAt
      at += size
    }
    return copy.owned()
  }

  /** Whether it has usage, also without its values. */
  get hasUsage(): boolean {
    return this.sentAt[USAGE] > 0 || this.sentAt[USAGE_DETAILS] > 0 || this.sentAt[COST_DETAILS] > 0
  }

  /** The same without values: what is needed to recognize repeats once everything is stored. */
  released(): Merged {
    const copy = new Merged(null, null, this)
    copy.ranges.fill(0)
    return copy
  }

  /** Whether only the times of the values are known. */
  get isReleased(): boolean {
    return this.before === null && this.batch === null
  }

  get bytes(): number {
    return OVERHEAD_BYTES + (this.before?.length ?? 0)
  }

  has(field: number): boolean {
    return this.ranges[2 * field + 1] !== 0
  }

  start(field: number): number {
    return this.ranges[2 * field]
  }

  end(field: number): number {
    return this.ranges[2 * field + 1]
  }

  /** The bytes that the range of a field refers to. */
  bufferOf(field: number): Buffer {
    const source = this.sources[field]
    return (source === BATCH ? this.batch : source === BEFORE ? this.before : this.united) as Buffer
  }

  /** The value of a field; null for none. */
  range(field: number): JsonRange | null {
    return this.has(field) ? { text: this.bufferOf(field), start: this.start(field), end: this.end(field) } : null
  }

  /** The value of a field as JSON; undefined for none. */
  json(field: number): string | undefined {
    return this.has(field) ? this.bufferOf(field).toString('utf8', this.start(field), this.end(field)) : undefined
  }

  /** A value that was stored before. */
  restore(field: number, start: number, end: number, sentAt: number): void {
    this.ranges[2 * field] = start
    this.ranges[2 * field + 1] = end
    this.sentAt[field] = sentAt
  }

  /**
   * Whether an event would change anything, as far as the timestamps say: for a state without values.
   * @param sentAt when it was sent
   */
  isOutdated(scan: BatchScan, event: number, sentAt: number): boolean {
    for (let field = 0; field < FIELD_COUNT; field++) {
      if (scan.start(scan.member(event, field)) !== 0 && sentAt > this.sentAt[field]) return false
    }
    return true
  }

  /** Merges the body of an event into the draft. */
  merge(scan: BatchScan, event: number, sentAt: number): void {
    const { ranges, sources } = this
    for (let field = 0; field < FIELD_COUNT; field++) {
      const place = scan.member(event, field)
      const start = scan.start(place)
      if (start === 0) continue
      const isLater = sources[field] === BEFORE ? sentAt > this.sentAt[field] : sentAt >= this.sentAt[field]
      const end = scan.end(place)
      if (field === METADATA && this.has(field) && this.unite(scan.text, start, end, isLater)) {
        if (isLater) this.sentAt[field] = sentAt
        continue
      }
      if (!isLater) continue
      if (!this.isSame(field, scan.text, start, end)) this.isChanged = true
      ranges[2 * field] = start
      ranges[2 * field + 1] = end
      sources[field] = BATCH
      this.sentAt[field] = sentAt
    }
  }

  /** Adds the members of other metadata, if both are objects that are not too large. */
  private unite(text: Buffer, start: number, end: number, isLater: boolean): boolean {
    this.union ??= ObjectUnion.of(this.range(METADATA))
    const outcome = this.union?.add({ text, start, end }, isLater) ?? 'refused'
    if (outcome === 'refused') {
      // An earlier value changes nothing: the union stays, because reading it again for each event would take seconds.
      if (isLater) {
        this.settle()
        this.union = null
      }
      return false
    }
    if (outcome === 'changed') {
      this.isChanged = true
      this.united = null
      this.sources[METADATA] = UNITED
    }
    return true
  }

  /** Encodes united metadata, after the last event of a batch. */
  settle(): void {
    if (this.sources[METADATA] !== UNITED || this.united !== null || this.union === null) return
    this.united = this.union.encode()
    this.ranges[2 * METADATA] = 0
    this.ranges[2 * METADATA + 1] = this.united.length
  }

  private isSame(field: number, text: Buffer, start: number, end: number): boolean {
    if (!this.has(field) || this.end(field) - this.start(field) !== end - start) return false
    return this.bufferOf(field).compare(text, start, end, this.start(field), this.end(field)) === 0
  }
}
