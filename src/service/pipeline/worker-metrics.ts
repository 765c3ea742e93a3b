import type { MetricBlock, Metrics, MetricsText } from '../../base/metrics.ts'

const PATH = '/worker/metrics'
const ANSWER_MS = 2_000

/** The metrics of one worker, as it sends them to another. */
interface WorkerBlocks {
  readonly worker: number
  readonly blocks: readonly MetricBlock[]
}

interface WorkerMetricsDeps {
  readonly index: number
  /** The metrics of this worker. */
  readonly own: Metrics
  /** The addresses of the other workers. */
  readonly others: () => Promise<readonly string[]>
}

/** `GET /metrics` of several workers: any of them answers for all, and each series has the label `worker`. */
export class WorkerMetrics implements MetricsText {
  /** Served to the other workers only. */
  readonly routes = { [PATH]: () => Response.json(this.ownBlocks()) }

  constructor(private readonly deps: WorkerMetricsDeps) {}

  /** The metrics of all workers. One that does not answer is left out. */
  async text(): Promise<string> {
    const others = await this.deps.others()
    const answers = await Promise.allSettled(others.map(ask))
    const answered = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
    const all = [this.ownBlocks(), ...answered].sort((a, b) => a.worker - b.worker)
    // The lines of a metric must stay together.
    const metrics = Map.groupBy(
      all.flatMap(({ blocks }) => blocks),
      ([head]) => head,
    )
    return [...metrics].map(([head, blocks]) => head + blocks.map(([, series]) => series).join('')).join('')
  }

  private ownBlocks(): WorkerBlocks {
    const { index, own } = this.deps
    return { worker: index, blocks: own.blocks(`worker="${index}"`) }
  }
}

async function ask(url: string): Promise<WorkerBlocks> {
  const answer = await fetch(url + PATH, { signal: AbortSignal.timeout(ANSWER_MS) })
  return (await answer.json()) as WorkerBlocks
}
