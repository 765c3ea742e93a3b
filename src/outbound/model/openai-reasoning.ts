import { isObject } from '../../base/json-object.ts'
import type { ProviderMembers } from './model.ts'

/** What a provider's message says of the model's reasoning. Some providers refuse the next request without it. */
const MESSAGE_MEMBERS = ['reasoning_content', 'reasoning', 'reasoning_details']
/** Members of a tool call that an answer reads; any other goes back as it came. */
const CALL_MEMBERS = new Set(['id', 'index', 'type', 'function'])
/** Texts of a reasoning detail that a stream sends in pieces; it repeats its other members, or sends them once. */
const DETAIL_TEXTS = ['text', 'summary', 'data']

const OPEN = '<think>'
const CLOSE = '</think>'
/** Whitespace before the tag that is still looked at. */
const START_LENGTH_MAX = 100

/** Collects what a provider wants back as it sent it, whole or in the deltas of a stream, and how long that is. */
export class ProviderParts {
  /** In characters of JSON, at least what has been collected. */
  length = 0

  /** Adds the reasoning of a message to those of earlier deltas. */
  addMessage(members: Record<string, unknown>, message: Record<string, unknown>): void {
    for (const name of MESSAGE_MEMBERS) this.add(members, name, message[name], joined)
  }

  /** Adds the unknown members of a tool call. The last value of each counts: streams send them whole. */
  addCall(members: Record<string, unknown>, call: Record<string, unknown>): void {
    for (const name of Object.keys(call))
      if (!CALL_MEMBERS.has(name)) this.add(members, name, call[name], (_, value) => value)
  }

  private add(
    members: Record<string, unknown>,
    name: string,
    value: unknown,
    join: (before: unknown, value: unknown) => unknown,
  ): void {
    if (value === undefined || value === null) return
    this.length += name.length + jsonLength(value)
    // `__proto__` is a name like any other.
    const before = Object.hasOwn(members, name) ? members[name] : undefined
    Object.defineProperty(members, name, {
      value: join(before, value),
      enumerable: true,
      configurable: true,
      writable: true,
    })
  }
}

/** The members, if there are any. */
export function nonEmpty(members: Record<string, unknown>): ProviderMembers | undefined {
  return Object.keys(members).length === 0 ? undefined : members
}

/** A value nested too deeply to be written again counts as infinitely long. */
function jsonLength(value: unknown): number {
  if (typeof value === 'string') return value.length
  try {
    return JSON.stringify(value).length
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

function joined(before: unknown, value: unknown): unknown {
  if (typeof before === 'string' && typeof value === 'string') return before + value
  if (!Array.isArray(value)) return value
  const details: unknown[] = Array.isArray(before) ? before : []
  for (const part of value) {
    const start = isObject(part) ? details.findLast((each) => isContinuedBy(each, part)) : undefined
    if (start === undefined) details.push(part)
    else continueDetail(start as Record<string, unknown>, part)
  }
  return details
}

/** Details of several types may have the same index. Without an index, only those with a text come in pieces. */
function isContinuedBy(detail: unknown, part: Record<string, unknown>): boolean {
  if (!isObject(detail) || detail.type !== part.type || detail.index !== part.index) return false
  return part.index !== undefined || (typeof detail.text === 'string' && typeof part.text === 'string')
}

function continueDetail(detail: Record<string, unknown>, part: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(part)) {
    if (value === null || name === '__proto__') continue
    const before = detail[name]
    const isPiece = DETAIL_TEXTS.includes(name) && typeof before === 'string' && typeof value === 'string'
    detail[name] = isPiece ? before + value : value
  }
}

/**
 * Separates the reasoning that some servers leave at the start of the content, in `<think>…</think>`, from the answer.
 * Text is passed through as soon as it is known to be none.
 */
export class ThoughtFilter {
  private state: 'start' | 'thought' | 'gap' | 'answer' = 'start'
  /** Everything so far, while it may be a thought. */
  private held = ''
  /** The end of the thought so far, in which its end may begin. */
  private tail = ''

  /** @returns the text that belongs to the answer */
  add(text: string): string {
    switch (this.state) {
      case 'start': {
        this.held += text
        const start = this.held.trimStart()
        if (start.startsWith(OPEN)) return this.think(start.slice(OPEN.length))
        if (OPEN.startsWith(start) && this.held.length < START_LENGTH_MAX) return ''
        return this.release()
      }
      case 'thought':
        this.held += text
        return this.think(text)
      case 'gap': {
        const answer = text.trimStart()
        if (answer !== '') this.state = 'answer'
        this.held += text.slice(0, text.length - answer.length)
        return answer
      }
      case 'answer':
        return text
    }
  }

  /** The content has ended. @returns what was held back and is no thought: one that never ended may be an answer */
  end(isCut: boolean): string {
    if (this.state === 'start' || (this.state === 'thought' && !isCut)) return this.release()
    return ''
  }

  /** The thought as it was sent, with the whitespace around it; empty if there was none. */
  get thought(): string {
    return this.held
  }

  private think(text: string): string {
    this.state = 'thought'
    const looked = this.tail + text
    const end = looked.indexOf(CLOSE)
    this.tail = looked.slice(1 - CLOSE.length)
    if (end < 0) return ''
    const rest = looked.slice(end + CLOSE.length)
    this.held = this.held.slice(0, this.held.length - rest.length)
    this.state = 'gap'
    return this.add(rest)
  }

  private release(): string {
    const text = this.held
    this.held = ''
    this.state = 'answer'
    return text
  }
}
