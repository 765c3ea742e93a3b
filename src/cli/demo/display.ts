import { count } from '../../base/format.ts'
import type { FleetReport, Progress } from './fleet.ts'

/** The demo's output. A terminal shows one line that is updated; a file or pipe gets a line every few seconds. */

const TTY_REFRESH_MS = 200
const PLAIN_LINE_MS = 5_000
/** The period over which events per second are measured. */
const RATE_MS = 2_000
const WAITING = 'Approvals and questions that still wait need the model of the demo: decide them while one runs.\n'
const CLEAR_LINE = '\r\x1b[2K'

/** Prints text above the line that is updated. */
export function print(text: string): void {
  process.stdout.write(`${process.stdout.isTTY ? CLEAR_LINE : ''}${text}\n`)
}

/** Shows the progress until the returned function is called. */
export function watch(progress: Progress): () => void {
  const { stdout } = process
  const startedAt = performance.now()
  let last = { at: startedAt, events: 0 }
  const show = () => {
    const now = performance.now()
    const { events } = progress.reported
    const perSecond = ((events - last.events) * 1000) / (now - last.at)
    if (now - last.at >= RATE_MS) last = { at: now, events }
    const line = liveLine(progress, (now - startedAt) / 1000, perSecond)
    stdout.write(stdout.isTTY ? `${CLEAR_LINE}${line.slice(0, stdout.columns - 1)}` : `${line}\n`)
  }
  const timer = setInterval(show, stdout.isTTY ? TTY_REFRESH_MS : PLAIN_LINE_MS)
  return () => {
    clearInterval(timer)
    if (stdout.isTTY) stdout.write(CLEAR_LINE)
  }
}

function liveLine(progress: Progress, seconds: number, perSecond: number): string {
  const { reported, total, ackMs } = progress
  return [
    `${seconds.toFixed(0).padStart(4)} s`,
    `runs ${count(reported.runs)} started, ${endedRuns(progress)}`,
    `events ${count(reported.events)} (${count(Math.round(perSecond))}/s)`,
    `reports ${count(total('acknowledged'))} acknowledged, ${count(total('queued'))} queued`,
    `ack p50 ${ms(ackMs(50))} p99 ${ms(ackMs(99))}`,
    `retries ${count(total('retries'))}`,
    `errors ${count(total('rejected') + total('dropped'))}`,
  ].join(' | ')
}

function endedRuns({ reported }: Progress): string {
  const counts = (['completed', 'failed', 'cancelled'] as const).map(
    (each) => `${count(reported[`runs ${each}`])} ${each}`,
  )
  return counts.join(', ')
}

/**
 * The totals of the session, whether SQL agrees with them, and example queries.
 * @param url undefined if the service ends with the demo
 */
export function summary(report: FleetReport, url: string | undefined): string {
  const { progress, differences, seconds, sessionTag, keysRevoked } = report
  const { reported, total, ackMs } = progress
  const tasks = (['completed', 'failed', 'skipped'] as const).map(
    (each) => `${count(reported[`tasks ${each}`])} ${each}`,
  )
  const perSecond = count(Math.round(reported.events / seconds))
  const lines = [
    `Reported in ${seconds.toFixed(1)} s:`,
    `  runs    ${count(reported.runs)} by the clients (those by OpenTelemetry and of hosted agents are not counted): ${endedRuns(progress)}`,
    `  tasks   ${count(reported.tasks)}: ${tasks.join(', ')}`,
    `  events  ${count(reported.events)} (${perSecond}/s), p50 ${ms(ackMs(50))}, p99 ${ms(ackMs(99))} from request to acknowledgement`,
    `  calls   ${count(total('retries'))} retried; reports ${count(total('acknowledged'))} acknowledged, ${count(total('rejected'))} rejected, ${count(total('dropped'))} lost`,
  ]
  const problem = progress.lastProblem()
  if (problem !== undefined) lines.push(`  The last problem: ${problem}`)
  if (!keysRevoked) lines.push('  The keys of this session could not be revoked; GET /api/v1/keys lists them.')
  const verdict =
    differences.length === 0
      ? ['SQL has exactly these runs, tasks and events, by count and by checksum of their ids.']
      : ['SQL HAS DIFFERENT NUMBERS:', ...differences.map((difference) => `  ${difference}`)]
  const more = url === undefined ? [] : ['', ...(progress.isHosting ? [WAITING] : []), ...examples(url, sessionTag)]
  return [...lines, '', ...verdict, ...more].join('\n')
}

function examples(url: string, sessionTag: string): string[] {
  const queries = [
    `select agent_name, status, count() as runs, round(avg(duration_ms)) as avg_ms from runs where has(tags, '${sessionTag}') group by all order by all`,
    `select type, level, count() as events from events group by all order by events desc`,
    `select agent_name, count() as runs, sum(input_tokens + output_tokens) as tokens, round(sum(cost_usd), 2) as usd from runs group by agent_name order by usd desc`,
  ]
  return ['Example queries (set AGENT_RUN_KEY to your key):', ...queries.map((query) => `\n${curl(url, query)}`)]
}

function curl(url: string, query: string): string {
  const body = JSON.stringify({ query }).replaceAll("'", `'\\''`)
  return `curl -s ${url}/api/v1/query -H "Authorization: Bearer $AGENT_RUN_KEY" -H 'Content-Type: application/json' -d '${body}'`
}

function ms(value: number): string {
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`
}
