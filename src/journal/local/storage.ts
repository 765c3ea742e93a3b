import type { ApiError } from '../../base/errors.ts'
import type { Epoch, Frame, Gap } from '../journal.ts'
import type { AppendPoint } from '../log/frame.ts'
import { PagePool } from '../log/pages.ts'
import type { Commit } from '../log/pending.ts'
import { dayOf, type LogStorage } from '../log/storage.ts'
import type { LogParts } from './parts.ts'
import { SegmentReader } from './segment-reader.ts'
import type { Segment, Segments } from './segments.ts'
import { WriteProbe } from './write-probe.ts'

/** Stores a journal in segment files; its unit of deletion is a segment. */
export class LocalStorage implements LogStorage {
  readonly pool = new PagePool()
  private readonly segments: Segments
  private readonly reader: SegmentReader<Segment>
  private readonly probe: WriteProbe

  constructor(
    dir: string,
    private readonly parts: LogParts,
  ) {
    this.segments = parts.segments
    this.reader = new SegmentReader(parts.segments)
    this.probe = new WriteProbe(dir)
  }

  get epochs(): readonly Epoch[] {
    return this.parts.identity.epochs
  }

  get gaps(): readonly Gap[] {
    return this.parts.gaps.all
  }

  get startSeq(): number | undefined {
    return this.segments.all[0]?.firstSeq
  }

  get bytes(): number {
    return this.segments.bytes
  }

  bytesAfter(seq: number): number {
    let bytes = 0
    for (const segment of this.segments.all) if (segment.lastSeq > seq) bytes += segment.bytes
    return bytes
  }

  /** A failing disk is noticed by the write. */
  refusal(): ApiError | undefined {
    return undefined
  }

  read(afterSeq: number, maxBytes: number): Promise<Frame[]> {
    return this.reader.read(afterSeq, maxBytes)
  }

  appendPoint(firstSeq: number, receivedAt: number): AppendPoint | Promise<AppendPoint> {
    return this.segments.appendPoint(firstSeq, receivedAt)
  }

  async write({ buffer, endSeq, check }: Commit, receivedAt: number): Promise<void> {
    await this.segments.write(buffer, endSeq, receivedAt, check)
    this.parts.acknowledged.set(endSeq)
    this.probe.succeeded()
  }

  failed(bytes: number): void {
    this.probe.failed(bytes)
  }

  begin(firstSeq: number): Promise<void> {
    return this.segments.begin(firstSeq)
  }

  trim(seq: number, keepBytes: number): void {
    for (;;) {
      const [oldest, next] = this.segments.all
      if (next === undefined || oldest.lastSeq > seq || this.bytes - oldest.bytes < keepBytes) return
      this.segments.dropOldest()
    }
  }

  dropThrough(seq: number): Promise<void> {
    return this.segments.dropThrough(seq)
  }

  async lastSeqBefore(beforeMs: number): Promise<number | undefined> {
    return this.segments.all.findLast(({ day }) => day !== undefined && day < dayOf(beforeMs))?.lastSeq
  }

  check(): Promise<void> {
    return this.probe.check()
  }

  async close(): Promise<void> {
    await this.segments.close()
    await this.parts.acknowledged.close()
  }
}
