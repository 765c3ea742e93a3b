/** Members that hold text written or read by a person, in order of preference. Of a list, the last item counts. */
const TEXT_MEMBERS = {
  input: ['message', 'messages', 'prompt', 'question', 'query', 'text', 'content', 'input', 'task', 'topic', 'value'],
  output: [
    'text',
    'message',
    'messages',
    'answer',
    'reply',
    'response',
    'output',
    'content',
    'result',
    'summary',
    'value',
  ],
} as const

/** Unicode code points. */
const PREVIEW_MAX = 240
const DEPTH_MAX = 6

/**
 * One line of at most {@link PREVIEW_MAX} characters about the input or output of a run: the text of its message if it has
 * one under a usual name, otherwise its JSON. Null for an empty object.
 * @param json may be truncated
 */
export function previewOf(json: string, side: keyof typeof TEXT_MEMBERS): string | null {
  const value = parsed(json)
  const text =
    value === undefined ? textInTruncated(json, TEXT_MEMBERS[side]) : textIn(value, TEXT_MEMBERS[side], DEPTH_MAX)
  if (text !== undefined) return oneLine(text)
  return json === '{}' ? null : oneLine(json)
}

/** The message of a parsed input or output under a usual name, and its other members; undefined if it has none. */
export function messageIn(
  value: unknown,
  side: keyof typeof TEXT_MEMBERS,
): { text: string; rest: object | null } | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const members = Object.entries(value)
  for (const name of TEXT_MEMBERS[side]) {
    const text = members.find(
      ([each, member]) => each === name && typeof member === 'string' && member.trim() !== '',
    )?.[1]
    if (typeof text !== 'string') continue
    const rest = members.filter(([each]) => each !== name)
    return { text, rest: rest.length === 0 ? null : Object.fromEntries(rest) }
  }
  return undefined
}

function textIn(value: unknown, names: readonly string[], depth: number): string | undefined {
  if (typeof value === 'string') return value.trim() === '' ? undefined : value
  if (depth === 0 || typeof value !== 'object' || value === null) return undefined
  if (Array.isArray(value)) return textIn(value.findLast(isText) ?? value.at(-1), names, depth - 1)
  const members = new Map<string, unknown>(Object.entries(value))
  for (const name of [...names, 'parts']) {
    const text = textIn(members.get(name), names, depth - 1)
    if (text !== undefined) return text
  }
  return members.size === 1 ? textIn([...members.values()][0], names, depth - 1) : undefined
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
