import { duration, shortId, timeOfDay, words } from '../dashboard/page/format.ts'
import { member, members } from './json-parts.ts'
import type { Activity, Received } from './protocol.ts'

export interface LineOptions {
  readonly color: boolean
  /** Of the terminal, asked for each line since windows change; infinite where nothing needs to be cut. */
  readonly width: () => number
  readonly agentName: (agentId: string) => string | undefined
}

const LEVEL_WIDTH = 5
/** Columns grow with what they have held, up to this. */
const AGENT_WIDTH_MAX = 24
const TYPE_WIDTH_MAX = 24

/** Makes lines of activities: time, level, agent, run, type or state, and what it says, in columns. */
export function createFormat({ color, width, agentName }: LineOptions): (received: Received) => string {
  const paint = createPaint(color)
  const agentColumn = createColumn(AGENT_WIDTH_MAX)
  const typeColumn = createColumn(TYPE_WIDTH_MAX)
  let day = new Date().toDateString()
  /** Times of day need a word when the day is another one than the reader's, or changes. */
  const dayLine = (receivedAt: string): string => {
    const at = new Date(receivedAt)
    if (at.toDateString() === day) return ''
    day = at.toDateString()
    return `${paint('dim', `── ${day} ──`)}\n`
  }
  return ({ activity, json }) => {
    const { level, levelStyle, type, typeStyle, summary } = describe(activity, json)
    const line = [
      paint('dim', timeOfDay(activity.received_at)),
      paint(levelStyle, level.toUpperCase().padEnd(LEVEL_WIDTH)),
      agentColumn(printable(agentName(activity.agent_id) ?? shortId(activity.agent_id))),
      paint('dim', shortId(activity.run_id)),
      paint(typeStyle, typeColumn(printable(type))),
      printable(summary),
    ].join(' ')
    return dayLine(activity.received_at) + cut(line.trimEnd(), width())
  }
}

/** Dim, so that it is not taken for an activity. */
export function formatNote(text: string, color: boolean): string {
  return createPaint(color)('dim', printable(text))
}

interface Description {
  /** Empty for what has none. */
  readonly level: string
  readonly levelStyle: Style
  readonly type: string
  readonly typeStyle: Style
  readonly summary: string
}

const LEVEL_STYLES: Readonly<Record<string, Style>> = { debug: 'grey', info: 'cyan', warn: 'yellow', error: 'redBold' }
const STATUS_STYLES: Readonly<Record<string, Style>> = {
  running: 'cyan',
  completed: 'green',
  failed: 'red',
  timed_out: 'red',
  awaiting_approval: 'yellow',
  awaiting_input: 'yellow',
}

function describe({ kind, event, task, run }: Activity, json: string): Description {
  if (event !== undefined) {
    const payload = member(member(json, 'event') ?? '{}', 'payload') ?? '{}'
    const levelStyle = LEVEL_STYLES[event.level] ?? 'plain'
    return { level: event.level, levelStyle, type: event.type, typeStyle: 'plain', summary: summarise(payload) }
  }
  const status = task?.status ?? run?.status ?? ''
  const said = task !== undefined ? [task.name, task.error_message] : run !== undefined ? outcome(run) : []
  return {
    level: '',
    levelStyle: 'plain',
    type: `${kind} ${words(status)}`,
    typeStyle: STATUS_STYLES[status] ?? 'plain',
    summary: said.filter((part) => part !== null && part !== '').join('  '),
  }
}

function outcome({ duration_ms, error_message, tags }: NonNullable<Activity['run']>): (string | null)[] {
  return [duration_ms === null ? null : duration(duration_ms), error_message, tags.map((tag) => `#${tag}`).join(' ')]
}

/**
 * `{"gen_ai.tool.name":"search","message":"found","ms":12}` as `found tool.name=search ms=12`: values as they were sent,
 * quotes only where they are needed. OpenTelemetry's prefix takes the width that what follows it needs.
 */
function summarise(payload: string): string {
  const shown: string[] = []
  for (const [name, value] of members(payload)) {
    const text = value.startsWith('"') ? (JSON.parse(value) as string) : null
    if (name === 'message' && text !== null) shown.unshift(text)
    else shown.push(`${name.replace(/^gen_ai\./, '')}=${text !== null && PLAIN_WORD.test(text) ? text : value}`)
  }
  return shown.join(' ')
}

const PLAIN_WORD = /^[\w.:/@+-]+$/

/**
 * Text of strangers must not steer the terminal: line breaks become spaces, other controls and marks that turn the
 * direction of writing become a sign.
 */
function printable(text: string): string {
  return text.replace(/[\t\n\r\u2028\u2029]+/g, ' ').replace(STEERING, '\ufffd')
}

const STEERING = /[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/** Pads to the widest so far and cuts what is wider than `max`, in columns of the terminal. */
function createColumn(max: number): (text: string) => string {
  let widest = 0
  return (text) => {
    const shown = cut(text, max)
    const width = Bun.stringWidth(shown)
    widest = Math.max(widest, width)
    return shown + ' '.repeat(widest - width)
  }
}

function cut(text: string, width: number): string {
  if (!Number.isFinite(width)) return text
  // A character may take no column, but not many of them in a row do.
  const start = text.slice(0, width * 10)
  const shown = Bun.sliceAnsi(start, 0, width, '…')
  // One too wide when the last character takes two columns.
  return Bun.stringWidth(shown) <= width ? shown : Bun.sliceAnsi(start, 0, width - 1, '…')
}

const STYLES = {
  plain: '',
  dim: '2',
  grey: '90',
  red: '31',
  redBold: '1;31',
  green: '32',
  yellow: '33',
  cyan: '36',
} as const
type Style = keyof typeof STYLES

function createPaint(color: boolean): (style: Style, text: string) => string {
  return (style, text) =>
    color && style !== 'plain' && text.trim() !== '' ? `\x1b[${STYLES[style]}m${text}\x1b[0m` : text
}
