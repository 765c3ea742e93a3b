const WIDTH = 120
const HEIGHT = 26
/** The height of the smallest bar: a lower one could not be seen. */
const BAR_MIN = 2

interface SparklineProps {
  /** What it shows, in words. */
  readonly label: string
  readonly values: readonly number[]
  /** The part of each value that is bad: the lower part of its bar. */
  readonly bad: readonly number[]
}

/** Bars over time without axes, for one line of a table. */
export function Sparkline({ label, values, bad }: SparklineProps) {
  const highest = Math.max(1, ...values)
  const step = WIDTH / values.length
  const heightOf = (value: number) => (value === 0 ? 0 : Math.max(BAR_MIN, (value / highest) * HEIGHT))
  const bars = (of: readonly number[]) =>
    of.map((value, at) => `M${((at + 0.5) * step).toFixed(1)} ${HEIGHT}v${(-heightOf(value)).toFixed(1)}`).join('')
  return (
    <svg class="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
      <path d={`M0 ${HEIGHT - 0.5}h${WIDTH}`} class="axis" />
      <path d={bars(values)} stroke-width={Math.max(1, step * 0.7)} />
      <path d={bars(bad)} stroke-width={Math.max(1, step * 0.7)} class="bad" />
    </svg>
  )
}
