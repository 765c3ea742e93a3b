/** What `GET /metrics` answers. */
export interface MetricsText {
  text(): string | Promise<string>
}

/** Separates the label values of a key. No label value contains it. */
const SEPARATOR = '\u0000'

/**
 * A registry of metrics in the Prometheus text format. Label values are given in the order of the names.
 */
export class Metrics implements MetricsText {
  private readonly metrics: Metric[] = []

  /** Adds a number that only increases. Without labels it starts at 0. */
  counter(name: string, help: string, labels: readonly string[] = []): Counter {
    return this.add(new Counter(name, help, labels))
  }

  /** Adds a number that is read on each scrape. `read` returns undefined if there is no value. */
  gauge(name: string, help: string, read: () => number | undefined): void {
    this.add(new Gauge(name, help, read))
  }

  /** Adds numbers that are read on each scrape, each with a value of `label`. */
  gauges(name: string, help: string, label: string, read: () => Iterable<readonly [string, number]>): void {
    this.add(new Gauges(name, help, label, read))
  }

  /** Adds a distribution. `buckets` are upper bounds, in ascending order. */
  histogram(name: string, help: string, buckets: readonly number[], labels: readonly string[] = []): Histogram {
    return this.add(new Histogram(name, help, buckets, labels))
  }

  /** All metrics, as `GET /metrics` answers them. */
  text(): string {
    return this.metrics
      .map((metric) => `# HELP ${metric.name} ${metric.help}\n# TYPE ${metric.name} ${metric.type}\n${metric.lines()}`)
      .join('')
  }

  private add<T extends Metric>(metric: T): T {
    this.metrics.push(metric)
    return metric
  }
}

interface Metric {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  lines(): string
}

class Counter implements Metric {
  readonly type = 'counter'
  private readonly cells = new Map<string, CounterCell>()

  constructor(
    readonly name: string,
    readonly help: string,
    private readonly labels: readonly string[],
  ) {
    if (labels.length === 0) this.at()
  }

  /** The count for one set of label values. Keep the cell if it is used often: the lookup costs more than the count. */
  at(...labelValues: readonly string[]): CounterCell {
    return this.cells.getOrInsertComputed(labelValues.join(SEPARATOR), () => ({ value: 0 }))
  }

  add(amount: number, ...labelValues: readonly string[]): void {
    this.at(...labelValues).value += amount
  }

  lines(): string {
    return [...this.cells].map(([key, { value }]) => `${this.name}${braces(this.labels, key)} ${value}\n`).join('')
  }
}

/** One number of a counter. */
export interface CounterCell {
  value: number
}

class Gauge implements Metric {
  readonly type = 'gauge'

  constructor(
    readonly name: string,
    readonly help: string,
    private readonly read: () => number | undefined,
  ) {}

  lines(): string {
    const value = this.read()
    return value === undefined ? '' : `${this.name} ${value}\n`
  }
}

class Gauges implements Metric {
  readonly type = 'gauge'

  constructor(
    readonly name: string,
    readonly help: string,
    private readonly label: string,
    private readonly read: () => Iterable<readonly [string, number]>,
  ) {}

  lines(): string {
    return [...this.read()].map(([key, value]) => `${this.name}${braces([this.label], key)} ${value}\n`).join('')
  }
}

class Histogram implements Metric {
  readonly type = 'histogram'
  private readonly cells = new Map<string, HistogramCell>()

  constructor(
    readonly name: string,
    readonly help: string,
    private readonly buckets: readonly number[],
    private readonly labels: readonly string[],
  ) {}

  /** The distribution for one set of label values. Keep the cell if it is used often, as for {@link Counter.at}. */
  at(...labelValues: readonly string[]): HistogramCell {
    return this.cells.getOrInsertComputed(labelValues.join(SEPARATOR), () => new HistogramCell(this.buckets))
  }

  observe(value: number, ...labelValues: readonly string[]): void {
    this.at(...labelValues).observe(value)
  }

  lines(): string {
    let text = ''
    for (const [key, { counts, sum }] of this.cells) {
      let total = 0
      for (const [i, count] of counts.entries()) {
        total += count
        const bound = this.buckets[i] ?? '+Inf'
        text += `${this.name}_bucket${braces([...this.labels, 'le'], joined(key, String(bound)))} ${total}\n`
      }
      text += `${this.name}_sum${braces(this.labels, key)} ${sum}\n${this.name}_count${braces(this.labels, key)} ${total}\n`
    }
    return text
  }
}

/** One distribution: the number of values in each bucket, of which the last is unbounded, and their sum. */
export class HistogramCell {
  readonly counts: number[]
  sum = 0

  constructor(private readonly buckets: readonly number[]) {
    this.counts = new Array<number>(buckets.length + 1).fill(0)
  }

  observe(value: number): void {
    let bucket = 0
    while (bucket < this.buckets.length && value > this.buckets[bucket]) bucket++
    this.counts[bucket]++
    this.sum += value
  }
}

function joined(key: string, last: string): string {
  return key === '' ? last : `${key}${SEPARATOR}${last}`
}

function braces(names: readonly string[], key: string): string {
  if (names.length === 0) return ''
  const values = key.split(SEPARATOR)
  const pairs = names.map((name, i) => `${name}="${escapeLabel(values[i] ?? '')}"`)
  return `{${pairs.join(',')}}`
}

function escapeLabel(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
