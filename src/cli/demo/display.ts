import type { Counters } from './counters.ts'
import type { FleetReport } from './fleet.ts'

/** The demo's output. A terminal shows one line that is updated; a file or pipe gets a line every few seconds. */
interface Terminal {
  readonly isTTY: boolean
  readonly columns: number
  write(text: string): void
}

interface Display {
  /** Prints text above the line that is updated. */
  print(text: string): void
  watch(counters: Counters): void
  stop(): void
}

const TTY_REFRESH_MS = 200
const PLAIN_LINE_MS = 5_000

export function createDisplay(terminal: Terminal): Display {
  let timer: NodeJS.Timeout | undefined
  const clear = () => {
    if (terminal.isTTY) terminal.write('\r\x1b[2K')
  }
  return {
    print(text) {
      clear()
      terminal.write(`${text}\n`)
    },
    watch(counters) {
      const startedAt = performance.now()
      let last = { at: startedAt, events: 0 }
      const show = () => {
        const now = performance.now()
        const perSecond = ((counters.events - last.events) * 1000) / (now - last.at)
        if (now - last.at >= 2_000) last = { at: now, events: counters.events }
        const line = liveLine(counters, (now - startedAt) / 1000, perSecond)
        terminal.write(terminal.isTTY ? `\r\x1b[2K${line.slice(0, terminal.columns - 1)}` : `${line}\n`)
      }
      timer = setInterval(show, terminal.isTTY ? TTY_REFRESH_MS : PLAIN_LINE_MS)
    },
    stop() {
      clearInterval(timer)
      clear()
    },
  }
}

function liveLine(counters: Counters, seconds: number, perSecond: number): string {
  const { runs, ackLatency } = counters
  return [
    `${seconds.toFixed(0).padStart(4)} s`,
    `runs ${whole(counters.runsStarted)} started, ${whole(runs.completed)} completed, ${whole(runs.failed)} failed`,
    `events ${whole(counters.events)} acknowledged (${whole(perSecond)}/s)`,
    `ack p50 ${ms(ackLatency.percentile(0.5))} p99 ${ms(ackLatency.percentile(0.99))}`,
    `retries ${whole(counters.retries)}`,
    `errors ${whole(counters.rejected + counters.unconfirmed)}`,
  ].join(' | ')
}

/** The totals of the session, whether SQL agrees with them, and example queries. */
export function summary(
  { counters, verification, seconds, sessionTag, keysRevoked }: FleetReport,
  url: string,
): string {
  const { runs, ackLatency, unconfirmed, rejected, lastRejection } = counters
  const tasks = [...counters.tasks.values()].reduce((total, count) => total + count, 0)
  const unfinished = runs.running > 0 ? `, ${whole(runs.running)} unfinished` : ''
  const lines = [
    `The service acknowledged in ${seconds.toFixed(1)} s:`,
    `  runs    ${whole(counters.runsStarted)}: ${whole(runs.completed)} completed, ${whole(runs.failed)} failed${unfinished}`,
    `  tasks   ${whole(tasks)}: ${[...counters.tasks]
      .filter(([, n]) => n > 0)
      .map(([status, n]) => `${whole(n)} ${status}`)
      .join(', ')}`,
    `  events  ${whole(counters.events)} (${whole(counters.events / seconds)}/s), p50 ${ms(ackLatency.percentile(0.5))}, p99 ${ms(ackLatency.percentile(0.99))} from request to acknowledgement`,
    `  calls   ${whole(counters.retries)} retried, ${whole(rejected)} rejected, ${whole(unconfirmed)} without a response`,
  ]
  if (lastRejection !== undefined) lines.push(`  The last rejection: ${lastRejection}`)
  if (!keysRevoked) lines.push('  The keys of this session could not be revoked; GET /api/v1/keys lists them.')
  lines.push('', ...verdict(verification, unconfirmed > 0), '', ...examples(url, sessionTag))
  return lines.join('\n')
}

function verdict({ holds, comparisons, problem }: FleetReport['verification'], hasUnconfirmed: boolean): string[] {
  if (problem !== undefined) return [`The SQL check failed: ${problem}`]
  if (holds && hasUnconfirmed)
    return ['SQL has everything that was acknowledged, and nothing twice. (Calls without a response are not checked.)']
  if (holds) return ['SQL has exactly these runs, tasks and events, by count and by checksum of their ids.']
  return [
    'SQL HAS DIFFERENT NUMBERS:',
    ...comparisons
      .filter(({ acknowledged, inSql }) => acknowledged !== inSql)
      .map(({ what, acknowledged, inSql }) => `  ${what}: ${acknowledged} acknowledged, ${inSql} in SQL`),
  ]
}

function examples(url: string, sessionTag: string): string[] {
  const queries = [
    `select agent_name, status, count() as runs, round(avg(duration_ms)) as avg_ms from runs where has(tags, '${sessionTag}') group by all order by all`,
    `select type, level, count() as events from events group by all order by events desc`,
    `select payload.gen_ai.request.model as model, count() as calls, sum(payload.gen_ai.usage.output_tokens::UInt64) as output_tokens, round(sum(payload.cost_usd::Float64), 2) as usd from events where type = 'llm.call' group by model order by usd desc`,
  ]
  return ['Example queries (set AGENT_RUN_KEY to your key):', ...queries.map((query) => `\n${curl(url, query)}`)]
}

function curl(url: string, query: string): string {
  const body = JSON.stringify({ query }).replaceAll("'", `'\\''`)
  return `curl -s ${url}/api/v1/query -H "Authorization: Bearer $AGENT_RUN_KEY" -H 'Content-Type: application/json' -d '${body}'`
}

function whole(value: number): string {
  return Math.round(value).toLocaleString('en-US')
}

function ms(value: number): string {
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`
}
