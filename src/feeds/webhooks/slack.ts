import { isObject, parsedJson } from '../../base/json-object.ts'
import { members } from '../../base/json-parts.ts'
import { type Subject, textMember } from './subject.ts'

/** Slack's limit of the text of a section is 3,000 characters, also after escaping; this leaves room for the markup around it. */
const QUOTED_LENGTH_MAX = 2_000
const LINE_LENGTH_MAX = 300
/** Of a header; Slack refuses a longer one. */
const HEADER_LENGTH_MAX = 150
const ROWS_MAX = 5
const ESCAPES = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
])
const CONTROL = /[^\P{Cc}\n]/u
/** Where Slack may find a mention in plain text, as in `@here`; not in an address of e-mail. */
const MENTION = /(?<![\w.+-])@(?=\w)/g
const NO_MENTION = '@\u200b'
const SCHEME = /:\/\//g
const NO_SCHEME = ':\u200b//'

/** What a message says; texts are not escaped. */
interface Content {
  readonly title: string
  /** Lines of name and value. */
  readonly facts: readonly (readonly [name: string, value: string])[]
  /** Shown as it is, in a box. */
  readonly quoted?: string
  /** The page that shows it; its path after the origin. */
  readonly page?: string
}

/**
 * The body for an incoming webhook of Slack: a title, what there is to know at a glance, and a link if the origin of the
 * page is known.
 */
export function slackBody(subject: Subject, publicUrl: string | undefined): string {
  const { title, facts, quoted = '', page } = contentOf(subject)
  const header = { type: 'plain_text', text: escaped(title, HEADER_LENGTH_MAX), emoji: false }
  const lines = facts
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `*${name}:* ${escaped(value, LINE_LENGTH_MAX)}`)
  const link = publicUrl !== undefined && page !== undefined ? `<${publicUrl}/${page}|Open>` : ''
  const blocks = [
    { type: 'header', text: header },
    ...[
      lines.join('\n'),
      quoted === '' ? '' : `\`\`\`${escaped(quoted.replaceAll('```', "'''"), QUOTED_LENGTH_MAX)}\`\`\``,
      link,
    ]
      .filter((text) => text !== '')
      // Verbatim: Slack makes no links and mentions of what callers wrote.
      .map((text) => ({ type: 'section', text: { type: 'mrkdwn', text, verbatim: true } })),
  ]
  const text = escaped(title, LINE_LENGTH_MAX).replace(SCHEME, NO_SCHEME)
  return JSON.stringify({ text, blocks, parse: 'none', link_names: false, unfurl_links: false, unfurl_media: false })
}

function contentOf(subject: Subject): Content {
  const { kind, head, record } = subject
  const page = `#/runs/${head.run_id}`
  switch (kind) {
    case 'run':
      return runContent(subject)
    case 'task':
      return {
        title: `Task ${textMember(record, 'name')}: ${words(textMember(record, 'status'))}`,
        facts: [...factsOf(subject), ['Error', textMember(record, 'error_message')]],
        page,
      }
    case 'score':
      return {
        title: `Score ${textMember(record, 'name')}`,
        facts: [
          ...factsOf(subject),
          ['Value', verdictOf(record)],
          ['Label', textMember(record, 'label')],
          ['Source', textMember(record, 'source')],
        ],
        quoted: textMember(record, 'text') || textMember(record, 'comment'),
        page,
      }
    case 'event':
      return eventContent(subject, page)
  }
}

function eventContent(subject: Subject, page: string): Content {
  const { type, head, record } = subject
  const payload = new Map(members(record.get('payload') ?? '{}'))
  if (head.run_id === null) return alertContent(type, payload)
  const waiting = { facts: [...factsOf(subject), ['Expires', textMember(payload, 'expires_at')]] as const }
  if (type === 'approval.requested')
    return {
      ...waiting,
      title: `Approval needed: ${textMember(payload, 'tool')}`,
      quoted: payload.get('input') ?? '',
      page: `#/waiting/approvals/${textMember(payload, 'approval_id')}`,
    }
  if (type === 'input.requested')
    return {
      ...waiting,
      title: 'A run asks a question',
      quoted: textMember(payload, 'question'),
      page: `#/waiting/input-requests/${textMember(payload, 'request_id')}`,
    }
  return { title: type, facts: factsOf(subject), quoted: record.get('payload') ?? '', page }
}

/** The value of a score; empty if it has none. */
function verdictOf(record: ReadonlyMap<string, string>): string {
  const value = record.get('value') ?? 'null'
  return value === 'null' ? '' : value
}

function runContent(subject: Subject): Content {
  const { record, head } = subject
  const usage = parsedJson(record.get('usage') ?? '')
  const tokens = isObject(usage) ? `${usage.total_tokens}` : ''
  const cost = Number(record.get('cost_usd') ?? 0)
  const ms = Number(record.get('duration_ms'))
  return {
    title: `Run ${words(textMember(record, 'status'))}`,
    facts: [
      ...factsOf(subject),
      ['Error', textMember(record, 'error_message')],
      ['Duration', ms > 0 ? `${ms / 1000} s` : ''],
      ['Tokens', tokens === '0' ? '' : tokens],
      ['Cost', cost > 0 ? `$${cost}` : ''],
    ],
    page: `#/runs/${head.run_id}`,
  }
}

function alertContent(type: string, payload: ReadonlyMap<string, string>): Content {
  const rows = parsedJson(payload.get('rows') ?? '')
  const shown = Array.isArray(rows) ? rows.slice(0, ROWS_MAX).map((row) => JSON.stringify(row)) : []
  const series = payload.get('series') ?? '{}'
  return {
    title: `${type === 'alert.resolved' ? 'Resolved' : 'Alert'}: ${textMember(payload, 'name')}`,
    facts: [
      ['Series', series === '{}' ? '' : series],
      ['Value', payload.get('value') ?? ''],
      ['Error', textMember(payload, 'error')],
    ],
    quoted: shown.join('\n'),
    page: `#/alerts/${textMember(payload, 'alert_id')}`,
  }
}

function factsOf({ head }: Subject): Content['facts'] {
  return [['Run', head.run_id ?? '']]
}

/** A status in words. */
function words(status: string): string {
  return status.replaceAll('_', ' ')
}

/**
 * Text in which `&`, `<` and `>` are no markup, nobody is mentioned, and control characters are spaces. Cut before it is escaped, so that no
 * escape is cut.
 */
function escaped(text: string, lengthMax: number): string {
  let escaped = ''
  for (const character of text.slice(0, lengthMax + 1).replace(MENTION, NO_MENTION)) {
    const next = ESCAPES.get(character) ?? (CONTROL.test(character) ? ' ' : character)
    if (escaped.length + next.length >= lengthMax) return `${escaped}…`
    escaped += next
  }
  return escaped
}
