/** What `GET /metrics` answers. */
export interface MetricsText {
  text(): string | Promise<string>
}

/** A metric as text: the lines that describe it, and those of its series. */
export type MetricBlock = readonly [head: string, series: string]

/** One line; the values of its labels are joined by {@link SEPARATOR}. */
type Series = readonly [name: string, labels: readonly string[], key: string, value: number]

/** No label value contains it. */
const SEPARATOR = '\u0000'

/**
 * A registry of metrics in the Prometheus text format. Label values are given in the order of the names.
 */
export class Metrics implements MetricsText {
  private readonly metrics: { readonly head: string; readonly read: () => Iterable<Series> }[] = []

  /** Adds a number that only increases. Without labels it starts at 0. */
  counter(name: string, help: string, labels: readonly string[] = []): Cells<CounterCell> {
    const cells = new Cells<CounterCell>(() => ({ value: 0 }))
    if (labels.length === 0) cells.at()
    this.add('counter', name, help, () => cells.all().map(([key, { value }]) => [name, labels, key, value]))
    return cells
  }

  /** Adds a number that is read on each scrape. */
  gauge(name: string, help: string, read: () => number): void {
    this.add('gauge', name, help, () => [[name, [], '', read()]])
  }

  /** Adds numbers that are read on each scrape, each with a value of `label`. */
  gauges(name: string, help: string, label: string, read: () => readonly (readonly [string, number])[]): void {
    this.add('gauge', name, help, () => read().map(([key, value]) => [name, [label], key, value]))
  }

  /** Adds a distribution. `buckets` are upper bounds, in ascending order. */
  histogram(
    name: string,
    help: string,
    buckets: readonly number[],
    labels: readonly string[] = [],
  ): Cells<HistogramCell> {
    const cells = new Cells(() => new HistogramCell(buckets))
    this.add('histogram', name, help, () => cells.all().flatMap(([key, cell]) => [...cell.series(name, labels, key)]))
    return cells
  }

  /** All metrics, as `GET /metrics` answers them. */
  text(): string {
    return this.blocks().flat().join('')
  }

  /** @param label a label of every series, such as `worker="0"` */
  blocks(label = ''): MetricBlock[] {
    return this.metrics.map(({ head, read }) => [head, Array.from(read(), (each) => lineOf(each, label)).join('')])
  }

  private add(type: string, name: string, help: string, read: () => Iterable<Series>): void {
    this.metrics.push({ head: `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`, read })
  }
}

/** The values of a metric, one for each set of label values. */
class Cells<Cell> {
  private readonly cells = new Map<string, Cell>()

  constructor(private readonly create: () => Cell) {}

  /** Keep the cell if it is used often: the lookup costs more than the count. */
  at(...labelValues: readonly string[]): Cell {
    return this.cells.getOrInsertComputed(labelValues.join(SEPARATOR), this.create)
  }

  all(): [key: string, cell: Cell][] {
    return [...this.cells]
  }
}

/** One number of a counter. */
export interface CounterCell {
  value: number
}

/** One distribution: the number of values in each bucket, of which the last is unbounded, and their sum. */
export class HistogramCell {
  private readonly counts: number[]
  private sum = 0

  constructor(private readonly buckets: readonly number[]) {
    this.counts = new Array<number>(buckets.length + 1).fill(0)
  }

  observe(value: number): void {
    let bucket = 0
    while (bucket < this.buckets.length && value > this.buckets[bucket]) bucket++
    this.counts[bucket]++
    this.sum += value
  }

  *series(name: string, labels: readonly string[], key: string): Generator<Series> {
    const prefix = key === '' ? '' : `${key}${SEPARATOR}`
    let total = 0
    for (const [i, count] of this.counts.entries()) {
      total += count
      yield [`${name}_bucket`, [...labels, 'le'], `${prefix}${this.buckets[i] ?? '+Inf'}`, total]
    }
    yield [`${name}_sum`, labels, key, this.sum]
    yield [`${name}_count`, labels, key, total]
  }
}

function lineOf([name, labels, key, value]: Series, label: string): string {
  const values = key.split(SEPARATOR)
  const pairs = labels.map((each, i) => `${each}="${escapeLabel(values[i] ?? '')}"`)
  const all = label === '' ? pairs : [label, ...pairs]
  return `${name}${all.length === 0 ? '' : `{${all.join(',')}}`} ${value}\n`
}

function escapeLabel(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
