import { clockText, duration, shortId, words } from '../../base/format.ts'
import { member, members } from '../../base/json-parts.ts'
import { lookup } from '../../base/lookup.ts'
import type { ActivityItem } from '../../feeds/live/messages.ts'
import { createPaint, cut, pad, printable, type Style } from '../shared/terminal.ts'
import type { Received } from './follow.ts'

interface LineOptions {
  readonly color: boolean
  /** Width of the terminal, read for each line because windows are resized; infinite if lines need not be cut. */
  readonly width: () => number
  readonly agentName: (agentId: string) => string | undefined
}

const LEVEL_WIDTH = 5
/** Lines have no date. */
const TIME_START = 'yyyy-mm-dd '.length
/** Columns grow with their contents up to this width. */
const AGENT_WIDTH_MAX = 24
const TYPE_WIDTH_MAX = 24

/** Formats activities as lines with columns: time, level, agent, run, type or status, and a summary. */
export function createFormat({ color, width, agentName }: LineOptions): (received: Received) => string {
  const paint = createPaint(color)
  const agentColumn = createColumn(AGENT_WIDTH_MAX)
  const typeColumn = createColumn(TYPE_WIDTH_MAX)
  let day = new Date().toDateString()
  /** Lines show only the time of day, so a day that is not today, or a change of day, gets a line of its own. */
  const dayLine = (receivedAt: string): string => {
    const at = new Date(receivedAt)
    if (at.toDateString() === day) return ''
    day = at.toDateString()
    return `${paint('dim', `── ${day} ──`)}\n`
  }
  return ({ activity, json }) => {
    const { level, levelStyle, type, typeStyle, summary } = describe(activity, json)
    const line = [
      paint('dim', clockText(activity.received_at).slice(TIME_START)),
      paint(levelStyle, level.toUpperCase().padEnd(LEVEL_WIDTH)),
      agentColumn(printable(agentName(activity.agent_id) ?? shortId(activity.agent_id))),
      paint('dim', shortId(activity.run_id)),
      paint(typeStyle, typeColumn(printable(type))),
      printable(summary),
    ].join(' ')
    return dayLine(activity.received_at) + cut(line.trimEnd(), width())
  }
}

interface Description {
  /** Empty for runs and tasks. */
  readonly level: string
  readonly levelStyle: Style
  readonly type: string
  readonly typeStyle: Style
  readonly summary: string
}

const LEVEL_STYLES = lookup<Style>({ debug: 'grey', info: 'cyan', warn: 'yellow', error: 'redBold' })
const STATUS_STYLES = lookup<Style>({
  running: 'cyan',
  completed: 'green',
  failed: 'red',
  timed_out: 'red',
  awaiting_approval: 'yellow',
  awaiting_input: 'yellow',
})

function describe({ kind, event, task, run, score }: ActivityItem, json: string): Description {
  if (event !== undefined) {
    const payload = member(member(json, 'event') ?? '{}', 'payload') ?? '{}'
    const levelStyle = LEVEL_STYLES.get(event.level) ?? 'plain'
    return { level: event.level, levelStyle, type: event.type, typeStyle: 'plain', summary: summarise(payload) }
  }
  if (score !== undefined) {
    const verdict = [score.value, score.label, score.text].find((part) => part !== null)
    const summary = [`${score.name}=${verdict}`, score.comment ?? ''].filter((part) => part !== '').join('  ')
    return { level: '', levelStyle: 'plain', type: `score ${score.source}`, typeStyle: 'plain', summary }
  }
  const status = task?.status ?? run?.status ?? ''
  const said = task !== undefined ? [task.name, task.error_message] : run !== undefined ? outcome(run) : []
  return {
    level: '',
    levelStyle: 'plain',
    type: `${kind} ${words(status)}`,
    typeStyle: STATUS_STYLES.get(status) ?? 'plain',
    summary: said.filter((part) => part !== null && part !== '').join('  '),
  }
}

function outcome({ duration_ms, error_message, tags }: NonNullable<ActivityItem['run']>): (string | null)[] {
  return [duration_ms === null ? null : duration(duration_ms), error_message, tags.map((tag) => `#${tag}`).join(' ')]
}

/**
 * Formats `{"gen_ai.tool.name":"search","message":"found","ms":12}` as `found tool.name=search ms=12`. Values keep their
 * original text, with quotes only where needed. OpenTelemetry's prefix `gen_ai.` is dropped to save width.
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

/** Pads text to the widest so far and cuts text wider than `max` terminal columns. */
function createColumn(max: number): (text: string) => string {
  let widest = 0
  return (text) => {
    const shown = cut(text, max)
    widest = Math.max(widest, Bun.stringWidth(shown))
    return pad(shown, widest)
  }
}
