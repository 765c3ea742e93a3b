import { numOrNull } from '../data/json.ts'
import type { Role, Score, SignedIn } from '../data/records.ts'

/** Scores of a run as the page shows them, and the thumbs of people, which are scores, too. */

/** What a thumb is about: the run, or the event of a step, such as a model call. */
export type Scored = 'run' | { readonly event: string }

/** The name of the scores that thumbs are. */
const THUMB_NAME = 'feedback'
/** The id of a deleted score stays used: a thumb that was taken back has this label in the place of a value. */
const TAKEN_BACK = 'withdrawn'
/** The role that people need. */
export const SCORER: Role = 'approver'

/** Whether it is a thumb that was taken back. Averages leave it out, as it has no value. */
export function isTakenBack({ name, value, label }: Pick<Score, 'name' | 'value' | 'label'>): boolean {
  return name === THUMB_NAME && value === null && label === TAKEN_BACK
}

/** The value of a score, its label, or both; empty if it has only a text. */
export function valueText({ value, label }: Pick<Score, 'value' | 'label'>): string {
  const shown = value === null ? [] : [typeof value === 'boolean' ? String(value) : numberText(numOrNull(value) ?? 0)]
  return [...shown, ...(label === null ? [] : [label])].join(' · ')
}

/** Up to four digits that count. */
export function numberText(value: number): string {
  return String(Number(value.toPrecision(4)))
}

/** Who gave a score, if it says so: the page and some programs write it into its metadata. */
export function scorerOf({ metadata }: Pick<Score, 'metadata'>): string | null {
  const by = metadata.by ?? metadata.user_id ?? metadata.author
  return typeof by === 'string' && by !== '' ? by : null
}

/** The step that a score is about, of those that the page shows. */
export function stepOfScore<T extends { readonly id: string; readonly events: readonly { readonly id: string }[] }>(
  { task_id, event_id }: Pick<Score, 'task_id' | 'event_id'>,
  bars: readonly T[],
): T | undefined {
  if (task_id !== null) return bars.find(({ id }) => id === task_id)
  return event_id === null ? undefined : bars.find(({ events }) => events.some(({ id }) => id === event_id))
}

function isAbout(score: Pick<Score, 'task_id' | 'event_id' | 'session_id'>, scored: Scored): boolean {
  if (scored !== 'run') return score.event_id === scored.event
  return score.task_id === null && score.event_id === null && score.session_id === null
}

/** Everybody has one thumb for each thing: the same id each time. All who use keys share one, because keys are no people. */
export function thumbId(person: Pick<SignedIn, 'person_id'> | null, scored: Scored): string {
  return `thumb ${person?.person_id ?? 'key'} ${scored === 'run' ? scored : `event ${scored.event}`}`
}

export interface Thumb {
  /** Null: none, or taken back. */
  readonly isUp: boolean | null
  readonly comment: string
}

/** The body of the call that sets a thumb, or takes it back. */
export function thumbScore(person: SignedIn | null, scored: Scored, { isUp, comment }: Thumb): object {
  const by = person?.name ?? person?.email
  return {
    id: thumbId(person, scored),
    ...(scored !== 'run' && { event_id: scored.event }),
    name: THUMB_NAME,
    ...(isUp === null ? { label: TAKEN_BACK } : { value: isUp }),
    ...(isUp !== null && comment !== '' && { comment }),
    source: 'person',
    ...(by && { metadata: { by } }),
  }
}

export function thumbOf(score: Score | undefined): Thumb {
  if (score === undefined || isTakenBack(score)) return { isUp: null, comment: '' }
  return { isUp: score.value === true || score.value === 1, comment: score.comment ?? '' }
}

/** How many thumbs of all people point up and down. */
export function thumbCounts(scores: Iterable<Score>, scored: Scored): { readonly up: number; readonly down: number } {
  let [up, down] = [0, 0]
  for (const score of scores) {
    if (score.name !== THUMB_NAME || !isAbout(score, scored)) continue
    if (score.value === true || score.value === 1) up++
    else if (score.value === false || score.value === 0) down++
  }
  return { up, down }
}

/** The latest scores first. */
export function sorted(scores: Iterable<Score>): readonly Score[] {
  return [...scores].sort((a, b) => (a.created_at < b.created_at ? 1 : a.created_at > b.created_at ? -1 : 0))
}
