import { isUtf8 } from 'node:buffer'
import type { Steps } from '../../base/http/shared-slice.ts'
import { type DecodeBudget, DecodeError, type DecodeLimits, type Range } from '../traces/telemetry.ts'
import { type ItemRange, type Outline, OutlineBuilder, type OutlineGroup, type OutlineScope } from './outline.ts'

const [QUOTE, COMMA, COLON, BACKSLASH, LETTER_U, DIGIT_NINE] = [0x22, 0x2c, 0x3a, 0x5c, 0x75, 0x39]
const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = [0x7b, 0x7d, 0x5b, 0x5d]

/** 1 for bytes that do not end a piece of a string. */
const PLAIN = new Uint8Array(256).fill(1)
PLAIN[QUOTE] = PLAIN[BACKSLASH] = 0

const BYTES_PER_STEP = 1024 * 1024
/** What is deeper would be refused anyway, once all of it had been looked through. */
const DEPTH_MAX = 1_000_000
/** What `JSON.parse` takes for a value, for a byte of a number, and for a byte of anything else outside of strings. */
const [VALUE_COST, DIGIT_COST, BYTE_COST] = [8, 4, 1]
/** What an item may cost for each of the parts that it may have: an attribute costs about 50, and is two. */
const COST_PER_PART = 24
const NAME_BYTES_MAX = 40
/** The rest of a longer string is searched natively. */
const NEAR_BYTES = 32

/** What OTLP calls the members of the outline. */
export interface OutlineNames {
  readonly groups: string
  readonly scopes: string
  readonly items: string
  /** The member of an item that holds events. */
  readonly nested?: string
}

/** A value to be passed to `JSON.parse`, without the ends of its longest strings. */
export interface JsonRange extends ItemRange {
  readonly cuts: readonly Range[]
}

/**
 * Finds the items of an export in OTLP's JSON encoding. `JSON.parse` cannot pause, so it gets only one item at a time, and
 * none that has too many values. This checks nesting and the members of the outline; `JSON.parse` checks the rest.
 */
export class JsonOutlineReader {
  private readonly outline: OutlineBuilder
  private readonly text: Buffer
  private readonly end: number
  private at = 0
  private stepEnd = BYTES_PER_STEP
  /** What is open in the value that is being skipped; 1 for objects. */
  private open: number[] = []
  private stringStart = -1
  private cuts: Range[] = []
  private cutAt = -1
  /** A quote with none before it that has not been passed. */
  private quoteAt = -1
  private cost = 0
  private skipStart = 0

  /** @throws DecodeError */
  constructor(
    private readonly bytes: Uint8Array,
    private readonly names: OutlineNames,
    private readonly limits: DecodeLimits,
    budget: DecodeBudget,
  ) {
    if (!isUtf8(bytes)) throw new DecodeError('body: not valid JSON in UTF-8')
    this.outline = new OutlineBuilder(budget)
    this.text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.end = bytes.length
    if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) this.at = 3
  }

  *read(): Steps<Outline> {
    // An empty body is an empty export, as it is in protobuf.
    if (this.at === this.end) return this.outline
    const { groups } = this.names
    yield* this.body([groups], () => this.list(groups, () => this.group()))
    return this.outline
  }

  /** Reads a body that has all items in one list: one group with one scope. */
  *readFlat(): Steps<Outline> {
    const { items } = this.names
    const scope = this.outline.scope(this.outline.group())
    let hasList = false
    yield* this.body([items], () => {
      hasList = this.bytes[this.at] === OPEN_BRACKET
      return this.list(items, () => this.item(scope))
    })
    if (!hasList) throw new DecodeError(`${items}: expected an array`)
    return this.outline
  }

  private *body(names: readonly string[], read: () => Steps<void>): Steps<void> {
    while (!this.skipSpace()) yield
    if (this.bytes[this.at] !== OPEN_BRACE) throw new DecodeError('body: expected a JSON object')
    yield* this.object(names, read)
    while (!this.skipSpace()) yield
    if (this.at !== this.end) throw this.broken('the end')
  }

  private group(): Steps<void> {
    const group = this.outline.group()
    const { scopes } = this.names
    return this.object(['resource', scopes], (name) =>
      name === scopes ? this.list(scopes, () => this.scope(group)) : this.value(group.resource),
    )
  }

  private scope(group: OutlineGroup): Steps<void> {
    const scope = this.outline.scope(group)
    const { items } = this.names
    return this.object(['scope', items], (name) =>
      name === items ? this.list(items, () => this.item(scope)) : this.value(scope.scope),
    )
  }

  private *item(scope: OutlineScope): Steps<void> {
    const { nested } = this.names
    const start = this.beginValue()
    if (nested === undefined) while (!this.skipSome()) yield
    else yield* this.object([nested], () => this.list(nested, () => this.nested()))
    this.outline.item(scope, this.rangeFrom(start))
  }

  private *nested(): Steps<void> {
    this.outline.nested++
    this.beginSkip()
    while (!this.skipSome()) yield
  }

  private *value(into: Range[]): Steps<void> {
    const start = this.beginValue()
    while (!this.skipSome()) yield
    into.push(this.rangeFrom(start))
  }

  private beginValue(): number {
    this.cuts = []
    this.cost = 0
    this.beginSkip()
    return this.at
  }

  private rangeFrom(start: number): JsonRange {
    const { at: end, cuts, cost, limits } = this
    let bytes = end - start
    for (const cut of cuts) bytes -= cut.end - cut.start
    const range = { start, end, cuts }
    if (cost > limits.itemParts * COST_PER_PART) return { ...range, problem: 'more values than one item may have' }
    if (bytes > limits.itemTextBytes) return { ...range, problem: `more than ${limits.itemTextBytes} bytes` }
    return range
  }

  /** Reads the members with these names, each of which may come once, and skips the others. Skips what is no object. */
  private *object(names: readonly string[], read: (name: string) => Steps<void>): Steps<void> {
    if (this.bytes[this.at] !== OPEN_BRACE) return yield* this.skip()
    const seen = new Set<string>()
    this.at++
    while (!this.skipSpace()) yield
    if (this.bytes[this.at] === CLOSE_BRACE) return void this.at++
    for (;;) {
      if (this.bytes[this.at] !== QUOTE) throw this.broken('a member name')
      const start = this.at
      this.beginSkip()
      while (!this.skipSome()) yield
      const name = this.nameFrom(start)
      while (!this.skipSpace()) yield
      if (this.bytes[this.at] !== COLON) throw this.broken("':'")
      this.at++
      while (!this.skipSpace()) yield
      this.beginSkip()
      if (!names.includes(name)) while (!this.skipSome()) yield
      else if (seen.has(name)) throw new DecodeError(`body: ${name}: expected only once`)
      else {
        seen.add(name)
        yield* read(name)
      }
      while (!this.skipSpace()) yield
      const byte = this.bytes[this.at++]
      if (byte === CLOSE_BRACE) return
      if (byte !== COMMA) throw this.broken("',' or '}'")
      this.cost += VALUE_COST
      while (!this.skipSpace()) yield
    }
  }

  private *list(name: string, element: () => Steps<void>): Steps<void> {
    if (this.bytes[this.at] !== OPEN_BRACKET) {
      const isNull = this.text.toString('latin1', this.at, this.at + 4) === 'null'
      if (!isNull) throw new DecodeError(`body: ${name}: expected an array`)
      return yield* this.skip()
    }
    this.at++
    while (!this.skipSpace()) yield
    if (this.bytes[this.at] === CLOSE_BRACKET) return void this.at++
    for (;;) {
      this.beginSkip()
      yield* element()
      while (!this.skipSpace()) yield
      const byte = this.bytes[this.at++]
      if (byte === CLOSE_BRACKET) return
      if (byte !== COMMA) throw this.broken("',' or ']'")
      this.cost += VALUE_COST
      while (!this.skipSpace()) yield
    }
  }

  private nameFrom(start: number): string {
    if (this.at - start > NAME_BYTES_MAX) return ''
    const quoted = this.text.toString('utf8', start, this.at)
    if (!quoted.includes('\\')) return quoted.slice(1, -1)
    try {
      return JSON.parse(quoted)
    } catch {
      throw this.broken('an escape sequence')
    }
  }

  /** Returns false at the end of a step. */
  private skipSpace(): boolean {
    const { bytes, stepEnd } = this
    let { at } = this
    while (bytes[at] <= 0x20 && at < stepEnd) at++
    this.at = at
    return at < stepEnd || this.beginStep()
  }

  private *skip(): Steps<void> {
    this.beginSkip()
    while (!this.skipSome()) yield
  }

  private beginSkip(): void {
    if (this.open.length > 0) this.open = []
    this.skipStart = this.at
  }

  private beginStep(): false {
    this.stepEnd = this.at + BYTES_PER_STEP
    return false
  }

  /** Skips a value, but only up to the end of the step: then it returns false. */
  private skipSome(): boolean {
    if (!this.isSkipped()) return this.beginStep()
    if (this.at === this.skipStart) throw this.broken('a value')
    return true
  }

  private isSkipped(): boolean {
    const { bytes, open } = this
    if (this.stringStart >= 0) {
      if (!this.skipString()) return false
      if (open.length === 0) return true
    }
    while (this.at < this.stepEnd) {
      const byte = bytes[this.at]
      if (byte === QUOTE) {
        this.stringStart = this.at++
        this.cutAt = -1
        if (!this.skipString()) return false
        if (open.length === 0) return true
      } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        if (open.length === DEPTH_MAX) throw new DecodeError(`body: nested more than ${DEPTH_MAX} deep`)
        this.at++
        this.cost += VALUE_COST
        open.push(byte)
      } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
        // The end of what contains a number or word.
        if (open.length === 0) return true
        // Both pairs of brackets are two apart.
        if (open.pop() !== byte - 2) throw this.broken(byte === CLOSE_BRACE ? "']'" : "'}'")
        this.at++
        if (open.length === 0) return true
      } else if (byte === COMMA) {
        if (open.length === 0) return true
        this.at++
        this.cost += VALUE_COST
      } else if (byte === undefined) {
        if (open.length === 0) return true
        throw this.broken("']' or '}'")
      } else {
        this.at++
        if (byte > 0x20) this.cost += byte <= DIGIT_NINE ? DIGIT_COST : BYTE_COST
      }
    }
    return false
  }

  /** Continues after the opening quote, or wherever the last step ended. Returns whether the string has ended. */
  private skipString(): boolean {
    const { bytes, stepEnd } = this
    const keptEnd = this.stringStart + 1 + this.limits.textBytes
    let { at } = this
    for (;;) {
      if (at >= keptEnd && this.cutAt < 0) this.cutAt = this.characterAt(at)
      const near = Math.min(at + NEAR_BYTES, stepEnd)
      while (PLAIN[bytes[at]] === 1 && at < near) at++
      // No escape sequence lies between the two.
      if (at >= keptEnd && this.cutAt < 0) this.cutAt = this.characterAt(keptEnd)
      if (at >= stepEnd) break
      if (at >= this.end) throw this.broken("'\"'")
      if (PLAIN[bytes[at]] === 1) {
        at = this.quoteAfter(at, keptEnd)
        continue
      }
      if (bytes[at] === QUOTE) {
        this.at = at + 1
        if (this.cutAt >= 0) this.cuts.push({ start: this.cutAt, end: at })
        this.stringStart = -1
        return true
      }
      at += bytes[at + 1] === LETTER_U ? 6 : 2
    }
    this.at = at
    return false
  }

  /** The next quote, or the backslash that escapes it; `at` itself if a cut may have to be found before. */
  private quoteAfter(at: number, keptEnd: number): number {
    if (this.quoteAt < at) {
      const found = this.text.indexOf(QUOTE, at)
      this.quoteAt = found < 0 ? this.end : found
    }
    const quote = this.quoteAt
    if (quote > keptEnd && this.cutAt < 0) return at
    let backslashes = 0
    while (quote - backslashes > at && this.bytes[quote - backslashes - 1] === BACKSLASH) backslashes++
    return backslashes % 2 === 1 ? quote - 1 : quote
  }

  /** The start of the next character. */
  private characterAt(at: number): number {
    while ((this.bytes[at] & 0xc0) === 0x80) at++
    return at
  }

  private broken(expected: string): DecodeError {
    return new DecodeError(`body: not valid JSON: expected ${expected} at byte ${this.at}`)
  }
}
