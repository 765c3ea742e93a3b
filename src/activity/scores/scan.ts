import { invalid, invalidAll, messageOf, PROBLEMS_MAX, type Problem } from '../../base/errors.ts'
import { jsonError, readString, SHOWN_BYTES_MAX, shownText } from '../../base/http/json-reader.ts'
import {
  afterItem,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  JsonSyntaxError,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipColon,
  skipPlain,
  skipSpace,
  skipString,
  skipValue,
} from '../../base/http/json-scan.ts'
import type { Steps } from '../../base/http/shared-slice.ts'
import type { Limits } from '../../base/limits.ts'
import { CANONICAL_BYTES, parseCanonicalBytes, parseTimestamp } from '../../base/timestamp.ts'
import { SCORE_CELLS as CELLS, type ScoreColumns } from '../../stores/journal/rows.ts'
import { SCORE_SOURCES } from '../../stores/journal/scores.ts'
import type { Rejected } from '../events/scan.ts'
import { NO_VERDICT, TWO_SUBJECTS } from './problem.ts'
import { RunIds } from './run-ids.ts'
import type { ScanMemory } from './scan-memory.ts'
import {
  BYTES_PER_CHARACTER_MAX,
  charactersOf,
  decimalEnd,
  decimalOf,
  decodeInPlace,
  shortName,
  shownName,
  UUID_BYTES,
  uuidEnd,
} from './texts.ts'
import { FIELDS, type KnownName, knownName, knownNameAt, sourceAt } from './words.ts'

/** After so many bytes or scores, the scan may pause. */
const STEP_BYTES = 64 * 1024
const STEP_ROWS = 256
/** Longer ones are not written by any program, and take long to read. */
const NUMBER_BYTES_MAX = 400
const TIMESTAMP_BYTES_MAX = 400

/**
 * Validates the body of a call of `POST /api/ingest/v1/scores` in one pass over its bytes (docs/scores.md),
 * and records where the texts of each score are. Texts with escapes are decoded in place, where they are never longer.
 */
export class ScoreScan implements ScoreColumns {
  /** Number of valid scores. */
  count = 0
  hasIds = false
  readonly rejected: Rejected[] = []

  private readonly runs: RunIds
  private seenIndex = -1
  private problem: Problem | undefined
  /** Those of a call that is not `partial`, one for each invalid score. */
  private readonly problems: Problem[] = []
  /** The bits of the members that the current score has. */
  private seen = 0
  private at = 0

  /**
   * @param body valid UTF-8, as checked by `base/http/body.ts`
   * @param memory taken for the length of the body
   * @param partial omit invalid scores and list them in `rejected` instead of refusing the call
   */
  constructor(
    private readonly body: Uint8Array,
    private readonly memory: ScanMemory,
    private readonly limits: Limits,
    private readonly partial: boolean,
  ) {
    memory.text.set(body)
    memory.text[body.length] = 0
    this.runs = new RunIds(memory.text)
  }

  /** The runs of the scores, in lower case; `cells` has the index of each score's run. */
  get runIds(): readonly string[] {
    return this.runs.list
  }

  get text(): Buffer {
    return this.memory.text
  }

  get cells(): Int32Array {
    return this.memory.cells
  }

  get value(): Float64Array {
    return this.memory.value
  }

  get createdAt(): Float64Array {
    return this.memory.createdAt
  }

  /** The index of a score in the request. */
  indexOf(row: number): number {
    return this.memory.index[row]
  }

  /**
   * Reads the body; may pause at each step.
   * @throws ApiError VALIDATION_ERROR with the path of the invalid field
   */
  *steps(): Steps<void> {
    try {
      yield* this.readBody()
    } catch (error) {
      // What was wrong first is told first.
      throw this.problems.length > 0 ? invalidAll(this.problems) : jsonError(error, this.body)
    }
    if (this.problems.length > 0) throw invalidAll(this.problems)
    if (this.seenIndex < 0) throw invalid('scores', 'required')
    if (this.seenIndex === 0) throw invalid('scores', 'expected at least one score')
  }

  private *readBody(): Steps<void> {
    const bytes = this.text
    this.at = skipSpace(bytes, 0)
    if (bytes[this.at] !== OPEN_BRACE) {
      skipValue(bytes, this.at, this.limits.json_depth)
      throw invalid('body', 'expected a JSON object')
    }
    this.at = skipSpace(bytes, this.at + 1)
    while (bytes[this.at] !== CLOSE_BRACE) {
      if (bytes[this.at] !== QUOTE) throw new JsonSyntaxError(this.at, "a member name or '}'")
      const name = this.at
      const nameEnd = skipString(bytes, name)
      this.at = skipColon(bytes, nameEnd)
      if (shortName(this.text, name, nameEnd) !== 'scores') {
        skipValue(bytes, this.at, this.limits.json_depth - 1)
        throw invalid(shownName(this.text, name, nameEnd), 'unknown field; expected scores')
      }
      yield* this.readScores()
      this.at = afterItem(bytes, this.at, CLOSE_BRACE)
    }
    this.at = skipSpace(bytes, this.at + 1)
    if (this.at !== this.body.length) throw new JsonSyntaxError(this.at, 'the end of the body')
  }

  private *readScores(): Steps<void> {
    const bytes = this.text
    const { at } = this
    if (bytes[at] !== OPEN_BRACKET) {
      const end = skipValue(bytes, at, this.limits.json_depth - 1)
      throw invalid('scores', `expected an array of scores; got ${this.shown(at, end)}`)
    }
    this.begin()
    this.at = skipSpace(bytes, at + 1)
    let stepEnd = this.at + STEP_BYTES
    while (bytes[this.at] !== CLOSE_BRACKET) {
      const { events_per_call: max } = this.limits
      if (this.seenIndex === max)
        throw invalid('scores', `expected at most ${max} scores per call; split them into several calls`)
      this.at = afterItem(bytes, this.readScore(this.at), CLOSE_BRACKET)
      this.seenIndex++
      if (this.at < stepEnd && this.seenIndex % STEP_ROWS !== 0) continue
      stepEnd = this.at + STEP_BYTES
      yield
    }
    this.at++
  }

  /** Forgets what an earlier member of the same name contained. */
  private begin(): void {
    this.count = 0
    this.hasIds = false
    this.rejected.length = 0
    this.runs.clear()
    this.seenIndex = 0
  }

  private readScore(at: number): number {
    const bytes = this.text
    const row = this.count
    this.memory.reserveRow(row)
    const cells = row * CELLS.count
    this.cells.fill(-1, cells, cells + CELLS.count)
    this.cells[cells + CELLS.dataType] = this.cells[cells + CELLS.source] = 0
    this.createdAt[row] = Number.NaN
    this.problem = undefined
    this.seen = 0
    if (bytes[at] !== OPEN_BRACE) {
      at = skipValue(bytes, at, this.limits.json_depth - 2)
      this.fail('', 'expected a score object')
    } else {
      at = skipSpace(bytes, at + 1)
      while (bytes[at] !== CLOSE_BRACE) {
        if (bytes[at] !== QUOTE) throw new JsonSyntaxError(at, "a member name or '}'")
        const known = knownNameAt(bytes, at + 1)
        const nameEnd = known === undefined ? skipString(bytes, at) : at + 1 + known.word.length
        at = afterItem(bytes, this.readMember(row, known, at, nameEnd, skipColon(bytes, nameEnd)), CLOSE_BRACE)
      }
      at++
      if (this.problem === undefined) this.checkWhole(row, cells)
    }
    if (this.problem !== undefined) this.refuse(this.problem)
    else {
      this.memory.index[row] = this.seenIndex
      this.hasIds ||= this.cells[cells + CELLS.id] >= 0
      this.count++
    }
    return at
  }

  /** @param name where the name begins, with its quote */
  private readMember(row: number, known: KnownName | undefined, name: number, nameEnd: number, at: number): number {
    // After the first problem, the others are not even read.
    const isRead = this.problem === undefined
    if (known !== undefined && isRead) {
      const plainEnd = this.readPlain(row, known, at)
      this.note(known, name)
      if (plainEnd >= 0) return plainEnd
    }
    const end = skipValue(this.text, at, this.limits.json_depth - 3)
    if (!isRead) return end
    const field = known ?? knownName(shortName(this.text, name, nameEnd) ?? '')
    if (field !== undefined) {
      if (known === undefined) this.note(field, name)
      this.readField(row, field, at, end)
    } else this.fail(`.${shownName(this.text, name, nameEnd)}`, `unknown field; expected ${FIELDS.join(', ')}`)
    return end
  }

  /** Parsers disagree on which of two members with the same name counts. */
  private note({ bit }: KnownName, at: number): void {
    if ((this.seen & bit) !== 0) throw new JsonSyntaxError(at, 'each member name once')
    this.seen |= bit
  }

  /** Reads a value of the usual form in one pass. @returns where it ends; -1 for all others, of which nothing has been read */
  private readPlain(row: number, { field, cell, min, max }: KnownName, at: number): number {
    const { text, cells } = this
    const first = row * CELLS.count
    if (field === 'value') {
      const end = decimalEnd(text, at)
      if (end < 0) return -1
      cells[first + CELLS.dataType] = 1
      this.value[row] = decimalOf(text, at, end)
      return end
    }
    if (text[at] !== QUOTE) return -1
    if (field === 'run_id') {
      const run = this.runs.known(at + 1)
      if (run < 0 || text[at + 1 + UUID_BYTES] !== QUOTE) return -1
      cells[first + CELLS.run] = run
      return at + 2 + UUID_BYTES
    }
    if (cell < 0) return -1
    const end = skipPlain(text, at + 1)
    const length = end - at - 1
    if (text[end] !== QUOTE || length < min || length > max) return -1
    cells[first + cell] = at + 1
    cells[first + cell + 1] = end
    return end + 1
  }

  private checkWhole(row: number, at: number): void {
    const { cells } = this
    if (cells[at + CELLS.run] < 0) this.fail('.run_id', 'required')
    else if (cells[at + CELLS.name] < 0) this.fail('.name', 'required')
    else if (cells[at + CELLS.dataType] === 0) {
      if (cells[at + CELLS.label] >= 0) cells[at + CELLS.dataType] = 3
      else if (cells[at + CELLS.text] >= 0) cells[at + CELLS.dataType] = 4
      else this.fail('.value', NO_VERDICT)
    }
    const subjects = Number(cells[at + CELLS.taskId] >= 0) + Number(cells[at + CELLS.eventId] >= 0)
    if (subjects + Number(cells[at + CELLS.sessionId] >= 0) > 1) this.fail('', TWO_SUBJECTS)
    if (this.problem === undefined && cells[at + CELLS.dataType] > 2) this.value[row] = 0
  }

  private readField(row: number, known: KnownName, at: number, end: number): void {
    if (known.cell >= 0) {
      this.readText(row, known, at, end)
      return
    }
    switch (known.field) {
      case 'run_id':
        this.cells[row * CELLS.count + CELLS.run] = this.runs.add(at, end)
        if (this.cells[row * CELLS.count + CELLS.run] < 0) this.fail('.run_id', 'expected a UUID', at, end)
        break
      case 'task_id': {
        const idEnd = uuidEnd(this.text, at, end)
        if (idEnd < 0) this.fail('.task_id', 'expected a UUID', at, end)
        else this.setRange(row, CELLS.taskId, at + 1, idEnd)
        break
      }
      case 'value':
        this.readValue(row, at, end)
        break
      case 'source': {
        const source = sourceAt(this.text, at, end) || this.escapedSource(at, end)
        if (source === 0) this.fail('.source', `expected one of ${SCORE_SOURCES.join(', ')}`, at, end)
        this.cells[row * CELLS.count + CELLS.source] = source
        break
      }
      case 'metadata': {
        const max = this.limits.event_payload_bytes
        if (this.text[at] !== OPEN_BRACE) this.fail('.metadata', 'expected a JSON object', at, end)
        else if (end - at > max) this.fail('.metadata', `expected at most ${max} bytes; got ${end - at}`)
        else this.setRange(row, CELLS.metadata, at, end)
        break
      }
      default:
        this.readTime(row, at, end)
    }
  }

  private readText(row: number, { field, cell, min, max }: KnownName, at: number, end: number): void {
    if (this.text[at] !== QUOTE || end - at - 2 < min) {
      this.fail(`.${field}`, `expected a string of ${min} to ${max} characters`, at, end)
      return
    }
    const textEnd = end - at > max * BYTES_PER_CHARACTER_MAX + 2 ? -1 : decodeInPlace(this.text, at, end)
    if (textEnd === -2) this.fail(`.${field}`, 'expected text without U+0000 and lone surrogates')
    else if (textEnd === -1 || (textEnd - at - 1 > max && charactersOf(this.text, at + 1, textEnd) > max))
      this.fail(`.${field}`, `expected at most ${max} characters`)
    else this.setRange(row, cell, at + 1, textEnd)
  }

  private readValue(row: number, at: number, end: number): void {
    const byte = this.text[at]
    const cell = row * CELLS.count + CELLS.dataType
    const isBoolean = byte === 0x74 || byte === 0x66
    if (isBoolean) {
      this.cells[cell] = 2
      this.value[row] = byte === 0x74 ? 1 : 0
      return
    }
    const isNumber = byte === 0x2d || (byte >= 0x30 && byte <= 0x39)
    const value = isNumber && end - at <= NUMBER_BYTES_MAX ? Number(this.text.toString('latin1', at, end)) : Number.NaN
    if (!Number.isFinite(value)) this.fail('.value', 'expected a number, true or false', at, end)
    this.cells[cell] = 1
    this.value[row] = value
  }

  /** A source written with escapes, which is rare but valid JSON. */
  private escapedSource(at: number, end: number): number {
    if (this.text[at] !== QUOTE || end - at > SHOWN_BYTES_MAX) return 0
    return (SCORE_SOURCES as readonly string[]).indexOf(readString(this.text, at, end)) + 1
  }

  private readTime(row: number, at: number, end: number): void {
    let time: number | null = end - at === CANONICAL_BYTES + 2 ? parseCanonicalBytes(this.text, at + 1) : null
    if (time === null && this.text[at] === QUOTE && end - at <= TIMESTAMP_BYTES_MAX)
      time = parseTimestamp(readString(this.text, at, end))
    if (time === null)
      this.fail('.created_at', 'expected an RFC 3339 timestamp such as 2026-01-31T09:30:00.123Z', at, end)
    else this.createdAt[row] = time
  }

  private setRange(row: number, cell: number, start: number, end: number): void {
    const at = row * CELLS.count + cell
    this.cells[at] = start
    this.cells[at + 1] = end
  }

  private refuse(problem: Problem): void {
    if (this.partial) this.rejected.push({ index: this.seenIndex, message: messageOf(problem) })
    else if (this.problems.push(problem) === PROBLEMS_MAX) throw invalidAll(this.problems)
  }

  /**
   * Records the first problem of the current score.
   * @param at the value to be shown, to `end`
   */
  private fail(field: string, problem: string, at?: number, end = 0): void {
    if (this.problem !== undefined) return
    const message = at === undefined ? problem : `${problem}; got ${this.shown(at, end)}`
    this.problem = { param: `scores[${this.seenIndex}]${field}`, message }
  }

  private shown(at: number, end: number): string {
    return shownText(this.text, at, end)
  }
}
