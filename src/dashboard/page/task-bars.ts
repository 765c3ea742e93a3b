/** The members of a task that determine its bar. */
export interface TimedTask {
  readonly status: string
  readonly started_at: string | null
  readonly completed_at: string | null
}

interface TimedRun {
  readonly created_at: string
  readonly started_at: string | null
  readonly completed_at: string | null
}

/** When a task was under way: `from` and `to` in percent of the time the run has taken. */
export interface Bar {
  readonly from: number
  readonly to: number
  readonly ms: number
}

/**
 * A bar for each task that has begun and was not skipped. Tasks may begin before their run and end after it, so they
 * belong to its time, too. A task that never ended is shown up to the end of its run.
 *
 * @param now Unix milliseconds
 */
export function taskBars<T extends TimedTask>(tasks: readonly T[], run: TimedRun, now: number): ReadonlyMap<T, Bar> {
  const runEnd = run.completed_at === null ? now : Date.parse(run.completed_at)
  const spans = tasks.flatMap((task) => {
    if (task.started_at === null || task.status === 'pending' || task.status === 'skipped') return []
    const start = Date.parse(task.started_at)
    return { task, start, end: Math.max(start, task.completed_at === null ? runEnd : Date.parse(task.completed_at)) }
  })
  const start = Math.min(Date.parse(run.started_at ?? run.created_at), ...spans.map((span) => span.start))
  const end = Math.max(runEnd, ...spans.map((span) => span.end))
  const percent = (at: number) => ((at - start) / Math.max(1, end - start)) * 100
  return new Map(
    spans.map((span) => [span.task, { from: percent(span.start), to: percent(span.end), ms: span.end - span.start }]),
  )
}
