import type { Metrics, MetricsText } from '../../base/metrics.ts'

const PATH = '/worker/metrics'
const ANSWER_MS = 2_000
const METADATA = /^# (?:HELP|TYPE) (\S+)/
const SERIES = /^([^\s{]+)(?:\{(.*)\})?( .*)$/

/**
 * The metrics of several workers as one document in the Prometheus text format: each series gets the label `worker`.
 * @param texts the metrics of each worker, by its name
 */
function mergeMetrics(texts: ReadonlyMap<string, string>): string {
  // The lines of a metric must stay together.
  const metrics = new Map<string, string[]>()
  for (const [worker, text] of texts) {
    let current: string[] = []
    for (const line of text.split('\n')) {
      const name = METADATA.exec(line)?.[1]
      if (name !== undefined) {
        current = metrics.getOrInsertComputed(name, () => [])
        if (!current.includes(line)) current.push(line)
      } else if (line !== '') current.push(labelled(line, worker))
    }
  }
  return [...metrics.values()]
    .flat()
    .map((line) => `${line}\n`)
    .join('')
}

function labelled(series: string, worker: string): string {
  return series.replace(SERIES, (_, name: string, labels: string | undefined, value: string) => {
    const more = labels === undefined || labels === '' ? '' : `,${labels}`
    return `${name}{worker="${worker}"${more}}${value}`
  })
}

/** The metrics of one worker, as it sends them to another. */
interface WorkerText {
  readonly worker: number
  readonly text: string
}

interface WorkerMetricsDeps {
  readonly index: number
  /** The metrics of this worker. */
  readonly own: Metrics
  /** The addresses of the other workers. */
  readonly others: () => Promise<readonly string[]>
}

/** `GET /metrics` of several workers: any of them answers for all. */
export class WorkerMetrics implements MetricsText {
  /** Served to the other workers only. */
  readonly routes = { [PATH]: () => Response.json(this.ownText()) }

  constructor(private readonly deps: WorkerMetricsDeps) {}

  /** The metrics of all workers. One that does not answer is left out. */
  async text(): Promise<string> {
    const others = await this.deps.others()
    const answers = await Promise.allSettled(others.map(ask))
    const answered = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
    const all = [this.ownText(), ...answered].sort((a, b) => a.worker - b.worker)
    return mergeMetrics(new Map(all.map(({ worker, text }) => [String(worker), text])))
  }

  private ownText(): WorkerText {
    return { worker: this.deps.index, text: this.deps.own.text() }
  }
}

async function ask(url: string): Promise<WorkerText> {
  const answer = await fetch(url + PATH, { signal: AbortSignal.timeout(ANSWER_MS) })
  return (await answer.json()) as WorkerText
}
