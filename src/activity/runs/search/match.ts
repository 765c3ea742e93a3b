import type { Steps } from '../../../base/http/shared-slice.ts'
import type { ListedRun, SearchMatch } from '../schema.ts'
import { type TermsFound, termsOfText } from './long-text.ts'
import type { SearchQuery, Term } from './search-query.ts'
import type { FoundEvent, FoundTask } from './search-sql.ts'
import { snippetOf } from './snippet.ts'

type Field = SearchMatch['field']
type Candidate = readonly [field: Field, text: string | null | undefined]

/** The match in the run's own fields; null if they do not have all terms. */
export function* matchInRun(search: SearchQuery, run: ListedRun, agentName: string): Steps<SearchMatch | null> {
  const byId = matchById(search, [
    ['run_id', run.run_id],
    ['external_run_id', run.external_run_id],
    ['session_id', run.session_id],
    ['external_user_id', run.external_user_id],
  ])
  return (
    byId ??
    (yield* bestMatch(search.terms, [
      ['error_message', run.error_message],
      ['input', run.input?.text],
      ['output', run.output?.text],
      ['tags', run.tags.join(' ')],
      ['external_run_id', run.external_run_id],
      ['session_id', run.session_id],
      ['external_user_id', run.external_user_id],
      ['agent_name', agentName],
      ['error_detail', run.error_detail?.text],
      ['metadata', run.metadata.text],
    ]))
  )
}

/** The match in an event that ClickHouse has found. */
export function matchInEvent(search: SearchQuery, event: FoundEvent): SearchMatch {
  const { event_id, seq, type, task_id, payload } = event
  const byId = matchById(search, [['event.id', event_id]])
  const match = byId ?? { field: 'event.payload' as const, snippet: snippetOf(payload, search.terms) }
  return { ...match, event_id, event_seq: seq, event_type: type, ...(task_id !== null && { task_id }) }
}

/** The match in a task that ClickHouse has found. */
export function* matchInTask(search: SearchQuery, task: FoundTask): Steps<SearchMatch> {
  const { task_id, name, input, output, error_message } = task
  const candidates: Candidate[] = [
    ['task.name', name],
    ['task.error_message', error_message],
    ['task.input', input],
    ['task.output', output],
  ]
  const byId = matchById(search, [['task.id', task_id]])
  const match = byId ?? (yield* bestMatch(search.terms, candidates)) ?? longestCandidate(search.terms, candidates)
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

/** The candidate with the most terms; null if the candidates together lack a term. */
function* bestMatch(terms: readonly Term[], candidates: readonly Candidate[]): Steps<SearchMatch | null> {
  const found: (TermsFound & { readonly field: Field })[] = []
  for (const [field, text] of candidates) {
    if (text == null) continue
    found.push({ field, ...(yield* termsOfText(text, terms)) })
    yield
  }
  const all = new Set(found.flatMap((each) => each.terms))
  if (all.size < terms.length) return null
  const [first] = found.sort((a, b) => b.terms.length - a.terms.length)
  return first === undefined ? null : { field: first.field, snippet: snippetOf(first.excerpt, first.terms) }
}

/** For a text that was cut, so that its match may not be in it: the longest candidate. */
function longestCandidate(terms: readonly Term[], candidates: readonly Candidate[]): SearchMatch {
  const [field, text] = candidates.reduce((a, b) => ((b[1]?.length ?? 0) > (a[1]?.length ?? 0) ? b : a))
  return { field, snippet: snippetOf(text ?? '', terms) }
}
