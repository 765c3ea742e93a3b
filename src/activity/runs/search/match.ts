import type { ListedRun, SearchMatch } from '../schema.ts'
import { normalized, type SearchQuery, type Term, termsIn } from './search-query.ts'
import type { FoundEvent, FoundRun, FoundTask } from './search-sql.ts'
import { snippetOf } from './snippet.ts'

type Field = SearchMatch['field']
type Candidate = readonly [field: Field, text: string | null | undefined]

/** The match of one of the run's ids; null if `q` is not the beginning of one. */
export function matchInIds(search: SearchQuery, run: ListedRun): SearchMatch | null {
  return matchById(search, [
    ['run_id', run.run_id],
    ['external_run_id', run.external_run_id],
    ['session_id', run.session_id],
    ['external_user_id', run.external_user_id],
  ])
}

/** The match in the fields of a run that ClickHouse has found. */
export function matchInRun({ terms }: SearchQuery, run: FoundRun): SearchMatch {
  return bestMatch(terms, [
    ['error_message', run.error_message],
    ['input', run.input],
    ['output', run.output],
    ['tags', run.tag_texts],
    ['external_run_id', run.external_run_id],
    ['session_id', run.session_id],
    ['external_user_id', run.external_user_id],
    ['agent_name', run.agent_name],
    ['error_detail', run.error_detail],
    ['metadata', run.metadata],
  ])
}

/** The match in an event that ClickHouse has found. */
export function matchInEvent(search: SearchQuery, event: FoundEvent): SearchMatch {
  const { event_id, seq, type, task_id, payload } = event
  const byId = matchById(search, [['event.id', event_id]])
  const match = byId ?? { field: 'event.payload' as const, snippet: snippetOf(payload, search.terms) }
  return { ...match, event_id, event_seq: seq, event_type: type, ...(task_id !== null && { task_id }) }
}

/** The match in a task that ClickHouse has found. */
export function matchInTask(search: SearchQuery, task: FoundTask): SearchMatch {
  const { task_id, name, input, output, error_message } = task
  const byId = matchById(search, [['task.id', task_id]])
  const match =
    byId ??
    bestMatch(search.terms, [
      ['task.name', name],
      ['task.error_message', error_message],
      ['task.input', input],
      ['task.output', output],
    ])
  return { ...match, task_id }
}

/** The match of an id that begins with the query. Ends of run ids match too, because people see and copy them. */
function matchById({ idPrefix }: SearchQuery, ids: readonly Candidate[]): SearchMatch | null {
  if (idPrefix === null) return null
  for (const [field, id] of ids) {
    if (field === 'run_id' && id?.endsWith(idPrefix) && id !== idPrefix)
      return { field, snippet: [{ text: id.slice(0, -idPrefix.length) }, { text: idPrefix, match: true }] }
    if (!id?.toLowerCase().startsWith(idPrefix)) continue
    const [found, rest] = [id.slice(0, idPrefix.length), id.slice(idPrefix.length)]
    return { field, snippet: [{ text: found, match: true }, ...(rest === '' ? [] : [{ text: rest }])] }
  }
  return null
}

/**
 * The candidate with the most terms, the first of several. Long texts are cut around the first word, so that all may lack a
 * term, or each of them; then it is the longest one with the most.
 */
function bestMatch(terms: readonly Term[], candidates: readonly Candidate[]): SearchMatch {
  const found = candidates.map(([field, text]) => ({
    field,
    text: text ?? '',
    own: termsIn(normalized(text ?? ''), terms),
  }))
  const hasAll = new Set(found.flatMap(({ own }) => own)).size === terms.length
  const { field, text, own } = found.reduce((best, next) => {
    const more = next.own.length - best.own.length
    return more > 0 || (more === 0 && !hasAll && next.text.length > best.text.length) ? next : best
  })
  return { field, snippet: snippetOf(text, own.length > 0 ? own : terms) }
}
