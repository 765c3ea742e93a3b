import { appendFileSync, closeSync, ftruncateSync, openSync, readSync, renameSync, rmSync, writeSync } from 'node:fs'
import { isUuid } from './ids.ts'
import type { Report } from './lane.ts'
import { lock } from './node-lock.ts'

const CHUNK_BYTES = 256 * 1024
/** Acknowledged reports at the beginning of the file are removed when there are this many bytes of them. */
const COMPACT_BYTES = 16 * 2 ** 20
const NEWLINE = 0x0a
const SPACE = 0x20
/**
 * A line has a report, `e <run> <JSON>`, or the offset up to which reports are acknowledged with two check digits, `a 123 26`.
 * Offsets count what was removed at the beginning of the file; its first line says how much that is, `b 123`. A line that was
 * damaged is kept in another file and replaced by spaces.
 */
const REPORT_LINE = /^([setcfv]) ([0-9a-fA-F-]{36}) (\{.*\})$/
const ACKNOWLEDGED_LINE = /^a (\d{1,15})(?: (\d\d))?$/
const BASE_LINE = /^b (\d{1,15})$/
const OFFSET_LINE_LENGTH_MAX = 24
/** An offset, or the beginning of one. When it is wrong, reports are sent again, which changes nothing. */
const OFFSET_LINE = /^[ab](?: \d*(?: \d*)?)?$/
const LETTERS = { start: 's', event: 'e', task: 't', complete: 'c', fail: 'f', score: 'v' } as const
const KINDS = new Map(Object.entries(LETTERS).map(([kind, letter]) => [letter as string, kind as Report['kind']]))
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
/** The beginning of a report's line. JSON has no control characters. */
const REPORT_BEGUN = /^[setcfv](?: (?:[0-9a-fA-F-]{0,36}|[0-9a-fA-F-]{36} (?:\{[ -\xff]*)?))?$/
/** A write that a kill interrupts ends where a page of memory does; all sizes of pages are multiples of this. */
const PAGE_BYTES = 4_096

/** A file that holds reports until they are acknowledged; reports and acknowledgements are appended to it. */
export class Spool {
  /** Reports in the file that {@link read} has not returned yet. */
  unread = 0
  private fd: number
  /** Add it to an offset to get the position in the file. */
  private origin = 0
  private end = 0
  private readAt = 0
  private acknowledgedTo = 0
  /** Where each report ends that was read and is not acknowledged. */
  private ends: number[] = []
  private endsFrom = 0
  private compactAt = COMPACT_BYTES
  private damaged = 0
  /** Why a damaged line could not be kept. */
  private notKept: unknown
  private isClosed = false

  constructor(
    private readonly path: string,
    private readonly unlock: () => void,
  ) {
    closeSync(openSync(path, 'a', 0o600))
    this.fd = openSync(path, 'r+')
    this.recover()
  }

  /** Bytes of reports that are not acknowledged yet. */
  get bytes(): number {
    return this.end - this.acknowledgedTo
  }

  /** Stores a report. When it returns, the report survives a crash of this process. @throws Error when it cannot be stored */
  append({ kind, runId, text }: Report): void {
    if (!isUuid(runId)) throw new Error('the id of the run is no UUID')
    this.write(`${LETTERS[kind]} ${runId} ${text}\n`)
    this.unread++
  }

  /** Counts a report that could not be stored as one that was read, because its writer has it in memory. */
  appendNothing(): void {
    this.ends.push(this.end)
  }

  /** Marks the newest report as read, because its writer has it in memory. Only while there is no other unread one. */
  skip(): void {
    this.readAt = this.end
    this.ends.push(this.end)
    this.unread--
  }

  /** The next unread reports, about `bytes` of them; undefined for one that is damaged. */
  read(bytes: number): (Report | undefined)[] {
    const reports: (Report | undefined)[] = []
    const ends: number[] = []
    const until = this.readAt + bytes
    const readAt = this.eachLine(this.readAt, (line, lineEnd) => {
      if (!hasReport(line)) return lineEnd < until
      const report = parseReport(line)
      if (report === undefined) this.setAside(line, lineEnd - line.length - 1)
      reports.push(report)
      ends.push(lineEnd)
      return lineEnd < until
    })
    this.readAt = readAt
    for (const end of ends) this.ends.push(end)
    this.unread = readAt >= this.end ? 0 : Math.max(0, this.unread - reports.length)
    return reports
  }

  /** What was found to be damaged since the last call, and where it is kept. */
  takeDamage(): { readonly reports: number; readonly detail: string } | undefined {
    const reports = this.damaged
    if (reports === 0) return undefined
    const kept = this.notKept === undefined ? `kept in ${this.asidePath}` : `they could not be kept: ${this.notKept}`
    this.damaged = 0
    this.notKept = undefined
    return { reports, detail: `damaged in the spool ${this.path}; ${kept}` }
  }

  /** The first `reports` reports, in the order in which they were appended, are no longer needed. */
  acknowledge(reports: number): void {
    // An answer that was on its way when the client was closed.
    if (this.isClosed) return
    this.endsFrom += reports
    this.acknowledgedTo = this.ends[this.endsFrom - 1] ?? this.acknowledgedTo
    if (this.endsFrom > this.ends.length / 2) {
      this.ends = this.ends.slice(this.endsFrom)
      this.endsFrom = 0
    }
    try {
      if (this.unread === 0 && this.ends.length === this.endsFrom) this.clear()
      else if (this.acknowledgedTo + this.origin >= Math.max(this.compactAt, this.bytes)) this.compact()
      else this.write(`a ${this.acknowledgedTo} ${checkDigits(this.acknowledgedTo)}\n`)
    } catch {
      // A full disk. After a crash these reports would be sent again, which changes nothing.
    }
  }

  close(): void {
    this.isClosed = true
    closeSync(this.fd)
    if (this.end === 0) rmSync(this.path, { force: true })
    this.unlock()
  }

  private get asidePath(): string {
    return `${this.path}.damaged`
  }

  /**
   * Finds what an earlier process left. An offset that cannot be right is ignored: what was acknowledged is sent again, which
   * changes nothing.
   */
  private recover(): void {
    let base = 0
    this.eachLine(0, (line, end) => {
      const offset = offsetOf(line, BASE_LINE)
      if (offset !== undefined) {
        base = offset
        this.origin = end - base
      }
      return false
    })
    this.acknowledgedTo = base
    this.end = this.eachLine(base, (line, lineEnd) => {
      const offset = offsetOf(line, ACKNOWLEDGED_LINE)
      if (offset !== undefined && offset < lineEnd && this.isLineEnd(offset)) this.acknowledgedTo = offset
      return true
    })
    this.recoverLastLine()
    this.readAt = this.acknowledgedTo
    this.eachLine(this.readAt, (line) => {
      if (hasReport(line)) this.unread++
      return true
    })
    if (this.unread === 0) this.clear()
  }

  /**
   * The last line has no end when the process was killed while it wrote it. The call that made the report had not returned
   * then, so what there is of it is no loss; any other part of a line is damage. What a power cut leaves may look the same.
   */
  private recoverLastLine(): void {
    const rest = this.restFrom(this.end)
    if (rest.length === 0) return
    const fileEnd = this.end + this.origin + rest.length
    if (parseReport(rest) !== undefined) {
      writeSync(this.fd, Buffer.from([NEWLINE]), 0, 1, fileEnd)
      this.end += rest.length + 1
      return
    }
    const text = rest.toString('latin1')
    const isInterrupted = fileEnd % PAGE_BYTES === 0 && REPORT_BEGUN.test(text)
    if (!isInterrupted && !OFFSET_LINE.test(text)) this.keep(rest)
    ftruncateSync(this.fd, this.end + this.origin)
  }

  private restFrom(offset: number): Buffer {
    const pieces: Buffer[] = []
    for (let at = offset + this.origin; ; ) {
      const piece = Buffer.alloc(CHUNK_BYTES)
      const count = readSync(this.fd, piece, 0, piece.length, at)
      if (count === 0) return Buffer.concat(pieces)
      pieces.push(piece.subarray(0, count))
      at += count
    }
  }

  private isLineEnd(offset: number): boolean {
    if (offset < this.acknowledgedTo) return false
    if (offset === this.acknowledgedTo) return true
    const before = Buffer.alloc(1)
    return readSync(this.fd, before, 0, 1, offset - 1 + this.origin) === 1 && before[0] === NEWLINE
  }

  /** Moves a damaged line to another file. */
  private setAside(line: Buffer, offset: number): void {
    if (this.keep(line)) writeSync(this.fd, Buffer.alloc(line.length, SPACE), 0, line.length, offset + this.origin)
  }

  private keep(line: Buffer): boolean {
    this.damaged++
    try {
      appendFileSync(this.asidePath, Buffer.concat([line, Buffer.from([NEWLINE])]), { mode: 0o600 })
      return true
    } catch (error) {
      this.notKept = error
      return false
    }
  }

  /** Writes all of a line, or nothing. */
  private write(line: string): void {
    const bytes = Buffer.from(line)
    const start = this.end + this.origin
    try {
      writeAll(this.fd, bytes, start)
    } catch (error) {
      ftruncateSync(this.fd, start)
      throw error
    }
    this.end += bytes.length
  }

  private clear(): void {
    ftruncateSync(this.fd, 0)
    this.origin = 0
    this.end = 0
    this.readAt = 0
    this.acknowledgedTo = 0
    this.ends = []
    this.endsFrom = 0
    this.compactAt = COMPACT_BYTES
  }

  /** Replaces the file by one without the acknowledged reports at its beginning. */
  private compact(): void {
    const temporary = `${this.path}.new`
    const fd = openSync(temporary, 'w+', 0o600)
    const head = Buffer.from(`b ${this.acknowledgedTo}\n`)
    try {
      this.copyTo(fd, head)
      renameSync(temporary, this.path)
    } catch (error) {
      closeSync(fd)
      rmSync(temporary, { force: true })
      // Copying in vain at each acknowledgement would take long.
      this.compactAt = this.acknowledgedTo + this.origin + COMPACT_BYTES
      throw error
    }
    closeSync(this.fd)
    this.fd = fd
    this.origin = head.length - this.acknowledgedTo
    this.compactAt = COMPACT_BYTES
  }

  private copyTo(fd: number, head: Buffer): void {
    let to = writeAll(fd, head, 0)
    const chunk = Buffer.alloc(CHUNK_BYTES)
    for (let at = this.acknowledgedTo; at < this.end; ) {
      const count = readSync(this.fd, chunk, 0, Math.min(chunk.length, this.end - at), at + this.origin)
      if (count === 0) throw new Error(`the spool ${this.path} is shorter than expected`)
      to += writeAll(fd, chunk.subarray(0, count), to)
      at += count
    }
  }

  /**
   * Calls `visit` with each complete line from an offset on and with where it ends, until it returns false.
   * @returns where the last line ends that was visited
   */
  private eachLine(from: number, visit: (line: Buffer, end: number) => boolean): number {
    let chunk = Buffer.alloc(CHUNK_BYTES)
    for (let at = from; ; ) {
      const count = readSync(this.fd, chunk, 0, chunk.length, at + this.origin)
      let start = 0
      for (let stop = chunk.indexOf(NEWLINE); stop !== -1 && stop < count; stop = chunk.indexOf(NEWLINE, start)) {
        const line = chunk.subarray(start, stop)
        start = stop + 1
        if (!visit(line, at + start)) return at + start
      }
      at += start
      if (count < chunk.length) return at
      if (start === 0) chunk = Buffer.alloc(chunk.length * 2)
    }
  }
}

/** Writes all of these bytes. @returns how many they are */
function writeAll(fd: number, bytes: Buffer, position: number): number {
  for (let written = 0; written < bytes.length; )
    written += writeSync(fd, bytes, written, bytes.length - written, position + written)
  return bytes.length
}

function offsetOf(line: Buffer, pattern: RegExp): number | undefined {
  if (line.length > OFFSET_LINE_LENGTH_MAX) return undefined
  const [, offset, check] = pattern.exec(line.toString('latin1')) ?? []
  if (offset === undefined || (check !== undefined && check !== checkDigits(Number(offset)))) return undefined
  return Number(offset)
}

/** Detects each wrong digit of an offset. */
function checkDigits(offset: number): string {
  return String(offset % 97).padStart(2, '0')
}

/** Whether a line should be a report: it is no offset, and not blank. */
function hasReport(line: Buffer): boolean {
  const isOffset = line.length <= OFFSET_LINE_LENGTH_MAX && OFFSET_LINE.test(line.toString('latin1'))
  return !isOffset && line.some((byte) => byte !== SPACE)
}

function parseReport(line: Buffer): Report | undefined {
  try {
    const [, letter = '', runId = '', text = ''] = REPORT_LINE.exec(UTF8.decode(line)) ?? []
    const kind = KINDS.get(letter)
    if (kind === undefined) return undefined
    const { id, parent_run_id } = JSON.parse(text) as { id?: string; parent_run_id?: string }
    if (kind === 'start') return { kind, runId, text, parentRunId: parent_run_id }
    return kind === 'task' ? { kind, runId, text, taskId: String(id) } : { kind, runId, text }
  } catch {
    return undefined
  }
}

/**
 * Opens a file that holds reports until they are acknowledged.
 * @throws Error when it cannot be written, or another process uses it
 */
export function openSpool(path: string): Spool {
  const unlock = lock(path)
  try {
    return new Spool(path, unlock)
  } catch (error) {
    unlock()
    throw error
  }
}
