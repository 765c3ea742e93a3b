import { isSaid } from './messages/message-parts.ts'
import { MESSAGE_LISTS, TEXTS } from './names.ts'

type Side = keyof typeof TEXTS

const NAMES: Readonly<Record<Side, readonly string[]>> = {
  input: ['message', ...MESSAGE_LISTS, ...TEXTS.input, 'parts'],
  output: ['text', 'message', ...MESSAGE_LISTS, ...TEXTS.output, 'parts'],
}

/** Unicode code points. */
const PREVIEW_MAX = 240
const DEPTH_MAX = 6
/** Objects and lists that are looked into. */
const VALUES_MAX = 200

/**
 * One line of at most {@link PREVIEW_MAX} characters about the input or output of a run: the text of its last message, of any
 * provider, or one under a usual name, otherwise its JSON. Null for an empty object.
 * @param json may be truncated
 */
export function previewOf(json: string, side: Side): string | null {
  const value = parsed(json)
  const names = NAMES[side]
  const text = value === undefined ? textInTruncated(json, names) : new TextSearch(names).find(value, DEPTH_MAX)
  if (text !== undefined) return oneLine(text)
  return json === '{}' ? null : oneLine(json)
}

/** The message of a parsed input or output under a usual name, and its other members; undefined if it has none. */
export function messageIn(value: unknown, side: Side): { text: string; rest: object | null } | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const members = Object.entries(value)
  for (const name of NAMES[side]) {
    const text = members.find(
      ([each, member]) => each === name && typeof member === 'string' && member.trim() !== '',
    )?.[1]
    if (typeof text !== 'string') continue
    const rest = members.filter(([each]) => each !== name)
    return { text, rest: rest.length === 0 ? null : Object.fromEntries(rest) }
  }
  return undefined
}

/** Finds a text without reading all, unlike `messages/`: a page of runs has hundreds of previews. */
class TextSearch {
  private left = VALUES_MAX

  constructor(private readonly names: readonly string[]) {}

  find(value: unknown, depth: number): string | undefined {
    if (typeof value === 'string') return value.trim() === '' ? undefined : value
    if (depth === 0 || typeof value !== 'object' || value === null || this.left-- <= 0) return undefined
    return Array.isArray(value) ? this.last(value, depth - 1) : this.member(value, depth - 1)
  }

  /** The last message or part that says something. */
  private last(list: readonly unknown[], depth: number): string | undefined {
    for (const item of [list.findLast(isText), ...list.slice(-VALUES_MAX).reverse()]) {
      const text = this.find(item, depth)
      if (text !== undefined) return text
    }
    return undefined
  }

  private member(value: object, depth: number): string | undefined {
    const members = new Map<string, unknown>(Object.entries(value))
    if (!isSaid(String(members.get('type'))) || members.get('role') === 'tool') return undefined
    for (const name of this.names) {
      const text = this.find(members.get(name), depth)
      if (text !== undefined) return text
    }
    const [only] = members.size === 1 ? members : []
    return only === undefined || this.names.includes(only[0]) ? undefined : this.find(only[1], depth)
  }
}

/** A part of a message that is text, unlike an image or a call of a tool. */
function isText(part: unknown): boolean {
  return typeof part === 'object' && part !== null && 'type' in part && part.type === 'text'
}

/** The first string under one of these names in truncated JSON. */
function textInTruncated(json: string, names: readonly string[]): string | undefined {
  const found = new RegExp(`"(?:${names.join('|')})"\\s*:\\s*"((?:[^"\\\\]|\\\\.){1,${2 * PREVIEW_MAX}})`).exec(json)
  return found?.[1]?.replace(/\\[nrt]/g, ' ').replace(/\\(["\\/])/g, '$1')
}

function oneLine(text: string): string {
  const line = text
    .slice(0, 4 * PREVIEW_MAX)
    .replace(/\s+/g, ' ')
    .trim()
  const points = [...line]
  return points.length <= PREVIEW_MAX
    ? line.toWellFormed()
    : `${points.slice(0, PREVIEW_MAX - 1).join('')}…`.toWellFormed()
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}
