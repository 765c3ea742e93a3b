/** Members that say what an input or output is about, in order of preference. */
const NAMES = [
  'message',
  'prompt',
  'question',
  'text',
  'content',
  'query',
  'task',
  'answer',
  'result',
  'response',
  'summary',
]
const LENGTH_MAX = 240
const DEPTH_MAX = 4
/** Only this many items of a list are read. */
const ITEMS_MAX = 20

/** A value cut to one line: its main text if it has one, otherwise its JSON. */
export function previewOf(value: unknown): string {
  if (value === null || value === undefined) return ''
  const text = mainText(value, 0) ?? shortJson(value)
  const line = text
    .slice(0, 4 * LENGTH_MAX)
    .replace(/\s+/g, ' ')
    .trim()
  if (line === '{}') return ''
  return line.length > LENGTH_MAX ? `${line.slice(0, LENGTH_MAX)}…` : line
}

function mainText(value: unknown, depth: number): string | undefined {
  if (typeof value === 'string') return value
  if (typeof value !== 'object' || value === null || depth === DEPTH_MAX) return undefined
  const members = value as Readonly<Record<string, unknown>>
  // The last message of a conversation.
  const list = Array.isArray(value) ? value : Object.hasOwn(members, 'messages') ? members.messages : undefined
  if (Array.isArray(list)) return typeof list.at(-1) === 'object' ? mainText(list.at(-1), depth + 1) : undefined
  const named = NAMES.find((name) => Object.hasOwn(members, name) && members[name] !== '' && members[name] !== null)
  if (named !== undefined) return mainText(members[named], depth + 1)
  const [only, ...others] = Object.values(members)
  return others.length === 0 ? mainText(only, depth + 1) : undefined
}

/** Inputs have up to 13 MiB, so parts that would be cut are not printed. */
function shortJson(value: unknown): string {
  const cut = (_name: string, each: unknown) => {
    if (typeof each === 'string') return each.slice(0, LENGTH_MAX)
    return Array.isArray(each) ? each.slice(0, ITEMS_MAX) : each
  }
  return JSON.stringify(value, cut) ?? ''
}
