import { closeSync, ftruncateSync, openSync, readSync, renameSync, rmSync, writeSync } from 'node:fs'
import { lock } from './node-lock.ts'
import type { Report, ReportKind, Spool } from './spool.ts'

const CHUNK_BYTES = 256 * 1024
/** Acknowledged reports at the beginning of the file are removed when there are this many bytes of them. */
const COMPACT_BYTES = 16 * 2 ** 20
const NEWLINE = 0x0a
/**
 * A line has a report, `e <run> <JSON>`, or the offset up to which reports are acknowledged, `a 123`. Offsets count what was
 * removed at the beginning of the file; its first line says how much that is, `b 123`.
 */
const REPORT_LINE = /^([setcf]) ([0-9a-fA-F-]{36}) (\{.*\})$/
const ACKNOWLEDGED_LINE = /^a (\d+)$/
const BASE_LINE = /^b (\d+)$/
const OFFSET_LINE_LENGTH_MAX = 20

/** A spool in a file, to which reports and acknowledgements are appended. */
class FileSpool implements Spool {
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
  private isClosed = false

  constructor(
    private readonly path: string,
    private readonly unlock: () => void,
  ) {
    closeSync(openSync(path, 'a', 0o600))
    this.fd = openSync(path, 'r+')
    this.recover()
  }

  get bytes(): number {
    return this.end - this.acknowledgedTo
  }

  append({ kind, runId, text }: Report): void {
    this.write(`${kind} ${runId} ${text}\n`)
    this.unread++
  }

  skip(): void {
    this.readAt = this.end
    this.ends.push(this.end)
    this.unread--
  }

  read(bytes: number): Report[] {
    const reports: Report[] = []
    const until = this.readAt + bytes
    this.readAt = this.eachLine(this.readAt, (line, lineEnd) => {
      const report = parseReport(line)
      if (report !== undefined) {
        reports.push(report)
        this.ends.push(lineEnd)
      }
      return lineEnd < until
    })
    this.unread = this.readAt >= this.end ? 0 : this.unread - reports.length
    return reports
  }

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
      else if (this.acknowledgedTo + this.origin >= Math.max(COMPACT_BYTES, this.bytes)) this.compact()
      else this.write(`a ${this.acknowledgedTo}\n`)
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

  /** Finds what an earlier process left. A last line without an end was never reported as stored. */
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
    this.end = this.eachLine(base, (line) => {
      this.acknowledgedTo = offsetOf(line, ACKNOWLEDGED_LINE) ?? this.acknowledgedTo
      return true
    })
    this.readAt = this.acknowledgedTo
    this.eachLine(this.readAt, (line) => {
      if (parseReport(line) !== undefined) this.unread++
      return true
    })
    if (this.unread === 0) this.clear()
    else ftruncateSync(this.fd, this.end + this.origin)
  }

  /** A line that could only be written in part is overwritten by the next one. */
  private write(line: string): void {
    const bytes = Buffer.from(line)
    let written = 0
    while (written < bytes.length) {
      const position = this.end + this.origin + written
      written += writeSync(this.fd, bytes, written, bytes.length - written, position)
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
  }

  /** Replaces the file by one without the acknowledged reports at its beginning. */
  private compact(): void {
    const temporary = `${this.path}.new`
    const fd = openSync(temporary, 'w+', 0o600)
    const head = Buffer.from(`b ${this.acknowledgedTo}\n`)
    let to = writeSync(fd, head, 0, head.length, 0)
    const chunk = Buffer.alloc(CHUNK_BYTES)
    for (let at = this.acknowledgedTo; at < this.end; ) {
      const count = readSync(this.fd, chunk, 0, Math.min(chunk.length, this.end - at), at + this.origin)
      to += writeSync(fd, chunk, 0, count, to)
      at += count
    }
    renameSync(temporary, this.path)
    closeSync(this.fd)
    this.fd = fd
    this.origin = head.length - this.acknowledgedTo
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

function offsetOf(line: Buffer, pattern: RegExp): number | undefined {
  const [, offset] = pattern.exec(line.subarray(0, OFFSET_LINE_LENGTH_MAX).toString()) ?? []
  return offset === undefined ? undefined : Number(offset)
}

function parseReport(line: Buffer): Report | undefined {
  const [, kind, runId = '', text = ''] = REPORT_LINE.exec(line.toString()) ?? []
  return kind === undefined ? undefined : { kind: kind as ReportKind, runId, text }
}

/**
 * Opens a file that holds reports until they are acknowledged.
 * @throws Error when it cannot be written, or another process uses it
 */
export function openSpool(path: string): Spool {
  const unlock = lock(path)
  try {
    return new FileSpool(path, unlock)
  } catch (error) {
    unlock()
    throw error
  }
}
