import { type Api, ApiFailure } from './api.ts'
import { h, setText } from './dom.ts'
import { count } from './format.ts'

const SQL = `
  SELECT count() AS runs, countIf(status IN ('queued', 'running', 'awaiting_approval', 'awaiting_input')) AS live,
    countIf(status = 'completed') AS completed, countIf(status IN ('failed', 'timed_out')) AS failed,
    (SELECT count() FROM events) AS events, (SELECT count() FROM tasks) AS tasks
  FROM runs`

const NAMES = ['runs', 'live', 'completed', 'failed', 'events', 'tasks'] as const
const REFRESH_MS = 3_000
/** Counting may use a tenth of the time, so a large workspace is counted less often. */
const REST_PER_WORK = 10

/** Totals of the workspace, counted with the public SQL API. */
export function totals(api: Api) {
  const figures = Object.fromEntries(NAMES.map((name) => [name, h('dd', {}, '–')]))
  const element = h(
    'dl',
    { class: 'totals', 'aria-label': 'Totals' },
    ...NAMES.map((name) => h('div', { 'data-total': name }, h('dt', {}, name), figures[name] as HTMLElement)),
  )
  let nextAt = 0
  return {
    element,
    async refresh(): Promise<void> {
      const startedAt = performance.now()
      if (startedAt < nextAt) return
      nextAt = startedAt + REFRESH_MS
      const counted = await counts(api)
      nextAt = performance.now() + Math.max(REFRESH_MS, (performance.now() - startedAt) * REST_PER_WORK)
      for (const name of NAMES)
        setText(figures[name] as HTMLElement, counted === null ? '–' : count(Number(counted[name])))
    },
  }
}

/** Null while SQL is unavailable; the health strip shows why. @throws ApiFailure */
async function counts(api: Api): Promise<Readonly<Record<string, unknown>> | null> {
  try {
    const { rows } = await api.post<{ rows: Record<string, unknown>[] }>('/api/v1/query', { query: SQL })
    return rows[0] ?? null
  } catch (error) {
    if (error instanceof ApiFailure && (error.code === 'UNAVAILABLE' || error.code === 'RATE_LIMITED')) return null
    throw error
  }
}
