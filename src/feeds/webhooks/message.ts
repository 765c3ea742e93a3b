import { isObject, parsedJson } from '../../base/json-object.ts'
import { members } from '../../base/json-parts.ts'
import { encodeJson } from '../../base/raw-json.ts'
import type { Activity } from '../live/activity.ts'
import { deliveryIdOf } from './delivery-id.ts'
import type { StoredWebhook } from './schema.ts'
import { slackBody } from './slack.ts'
import { headOf, recordName, type Subject, subjectOf, textMember } from './subject.ts'

/** One message to an endpoint. */
export interface Message {
  readonly deliveryId: string
  readonly type: string
  readonly seq: number
  /** Null for alerts. */
  readonly runId: string | null
  /** The score that it is about. */
  readonly scoreId?: string | null | undefined
  /** When the activity was accepted, ISO 8601. */
  readonly timestamp: string
  /** JSON of at most {@link BODY_BYTES_MAX} bytes. */
  readonly body: string
  /** Why it cannot be sent: it is given up at once. */
  readonly problem?: string
}

/** What the record of a run says once it has ended and its events are counted, as JSON. */
export interface RunDetails {
  /** Null: too long. */
  readonly input: string | null
  /** Null: too long. */
  readonly output: string | null
  readonly usage: string
  readonly cost_usd: string
  readonly event_count: string
  readonly last_event_at: string
}

interface Batch {
  readonly epoch: string
  readonly activities: readonly Activity[]
  /** Of the runs that {@link endedRuns} names, by run_id. */
  readonly details: ReadonlyMap<string, RunDetails>
  /** No message can be made of an activity. */
  readonly onBroken?: (seq: number, error: unknown) => void
}

/** Most bytes of a body: what receivers commonly accept. */
export const BODY_BYTES_MAX = 20 * 1024
/** A free-form member that is longer is left out. */
export const FREE_FORM_BYTES_MAX = 8 * 1024
const LEFT_OUT = 'null'
const FREE_FORM = ['input', 'output', 'payload', 'text', 'comment']
const ALERTS: ReadonlySet<string> = new Set(['alert.fired', 'alert.resolved'])

/** Whether the activity is the end of a run, whose message needs {@link RunDetails}. */
export function isEnd({ endsRun, isRecount }: Activity): boolean {
  return endsRun && !isRecount
}

/** The runs that these activities end. */
export function endedRuns(activities: readonly Activity[]): string[] {
  const ended = activities.filter(isEnd).map(runOf)
  return [...new Set(ended.filter((runId) => runId !== null))]
}

function runOf(activity: Activity): string | null {
  try {
    return headOf(activity).run_id
  } catch {
    // It becomes no message.
    return null
  }
}

/**
 * The messages of activities that match the filter of an endpoint, in order. Rows that only repeat a run with newer counts
 * have none; neither do alerts that do not name the endpoint. One that cannot be made has a `problem`: the same data would
 * fail again, and what follows does not wait for it.
 * @param publicUrl the origin of the service in links; undefined: links are paths
 */
export function messagesOf(
  webhook: Pick<StoredWebhook, 'webhook_id' | 'format'>,
  { epoch, activities, details, onBroken }: Batch,
  publicUrl: string | undefined,
): Message[] {
  const messages: Message[] = []
  for (const activity of activities) {
    if (activity.isRecount) continue
    const deliveryId = deliveryIdOf({ webhookId: webhook.webhook_id, epoch, seq: activity.seq })
    try {
      const subject = subjectOf(activity)
      const { type, seq, head } = subject
      if (head.run_id === null && !isNotified(subject, webhook.webhook_id)) continue
      const ofScore = activity.kind === 'score' && { scoreId: textMember(subject.record, 'id') }
      complete(subject, activity.endsRun ? details.get(head.run_id ?? '') : undefined)
      const body = (webhook.format === 'slack' ? slackBody : standardBody)(subject, publicUrl)
      messages.push({ deliveryId, type, seq, runId: head.run_id, ...ofScore, timestamp: head.received_at, body })
    } catch (error) {
      onBroken?.(activity.seq, error)
      const { seq, kind: type } = activity
      const problem = 'no message can be made of this activity'
      messages.push({ deliveryId, type, seq, runId: null, timestamp: '', body: '', problem })
    }
  }
  return messages
}

/** A message that tests an endpoint. @param id unique, without a dot */
export function testMessage(
  { webhook_id, format }: Pick<StoredWebhook, 'webhook_id' | 'format'>,
  id: string,
  at: Date,
): Message {
  const [type, timestamp] = ['webhook.test', at.toISOString()]
  const text = 'This is a test of a webhook: its endpoint works.'
  const standard = { type, timestamp, cursor: null, data: { webhook_id, message: text } }
  return {
    deliveryId: `msg_${webhook_id.replaceAll('-', '')}_test_${id}`,
    type,
    seq: 0,
    runId: null,
    timestamp,
    body: JSON.stringify(format === 'slack' ? { text } : standard),
  }
}

function isNotified({ type, record }: Subject, webhookId: string): boolean {
  if (!ALERTS.has(type)) return false
  const payload = parsedJson(record.get('payload') ?? '')
  return isObject(payload) && Array.isArray(payload.notify) && payload.notify.includes(webhookId)
}

/** Adds what the activity of a run's end does not have, and leaves out what is too long. */
function complete(subject: Subject, details: RunDetails | undefined): void {
  const { record, head } = subject
  for (const [name, value] of Object.entries(details ?? {})) {
    record.set(name, value ?? LEFT_OUT)
    if (value === null) subject.isTruncated = true
  }
  // The rows of an alert may be long; the rest of its payload is not.
  if (head.run_id === null) {
    const payload = new Map(members(record.get('payload') ?? '{}'))
    if (shorten(payload, FREE_FORM_BYTES_MAX)) subject.isTruncated = true
    record.set('payload', objectOf(payload))
  }
  for (const name of FREE_FORM)
    if (isLonger(record.get(name) ?? '', FREE_FORM_BYTES_MAX)) {
      record.set(name, LEFT_OUT)
      subject.isTruncated = true
    }
}

function standardBody(subject: Subject, publicUrl = ''): string {
  const { type, kind, head, record } = subject
  const { cursor, agent_id, run_id, received_at } = head
  const start =
    encodeJson({ type, timestamp: received_at, cursor }).slice(0, -1) +
    `,"data":${encodeJson({ cursor, kind, agent_id, run_id, received_at }).slice(0, -1)}${recordName(kind)}`
  const end = `,"truncated":true,"link":${JSON.stringify(publicUrl + apiPathOf(subject))}}}`
  const whole = `${start}${objectOf(record)}${subject.isTruncated ? end : '}}'}`
  if (!isLonger(whole, BODY_BYTES_MAX)) return whole
  shorten(record, BODY_BYTES_MAX - Buffer.byteLength(start + end))
  return `${start}${objectOf(record)}${end}`
}

/** Where the API has the whole record. */
function apiPathOf({ kind, seq, head, record }: Subject): string {
  if (head.run_id === null)
    return `/api/v1/alerts/${textMember(new Map(members(record.get('payload') ?? '{}')), 'alert_id')}`
  const run = `/api/v1/runs/${head.run_id}`
  switch (kind) {
    case 'event':
      return `${run}/events?after_seq=${seq - 1}&limit=1`
    case 'run':
      return run
    case 'task':
    case 'score':
      return `${run}/${kind}s`
  }
}

/** Leaves out the longest members until the object has at most so many bytes. Returns whether it left out any. */
function shorten(members: Map<string, string>, bytesMax: number): boolean {
  let bytes = Buffer.byteLength(objectOf(members))
  if (bytes <= bytesMax) return false
  const sizes = Array.from(members, ([name, text]) => ({ name, size: Buffer.byteLength(text) }))
  for (const { name, size } of sizes.sort((a, b) => b.size - a.size)) {
    if (bytes <= bytesMax) break
    members.set(name, LEFT_OUT)
    bytes -= size - LEFT_OUT.length
  }
  return true
}

/** Whether a text has more bytes. Does not count the bytes of one that already has more characters. */
function isLonger(text: string, bytesMax: number): boolean {
  return text.length > bytesMax || Buffer.byteLength(text) > bytesMax
}

function objectOf(members: ReadonlyMap<string, string>): string {
  return `{${Array.from(members, ([name, text]) => `${JSON.stringify(name)}:${text}`).join()}}`
}
