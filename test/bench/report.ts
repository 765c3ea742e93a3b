import { cpus, loadavg, release, totalmem, type } from 'node:os'

/** Prints figures as they are measured. */
export interface Report {
  heading(text: string): void
  line(text: string): void
  /** `met` says whether the figure reaches the target; it has no other effect. */
  target(what: string, met: boolean): void
  /** Prints all targets again. */
  summary(): void
}

export function createReport(write: (text: string) => void): Report {
  const targets: string[] = []
  const line = (text: string) => write(`  ${text}\n`)
  return {
    heading: (text) => write(`\n${text}\n`),
    line,
    target(what, met) {
      const text = `${met ? 'met   ' : 'MISSED'}  ${what}`
      targets.push(text)
      line(text)
    },
    summary() {
      if (targets.length > 0) write(`\nTargets\n${targets.map((text) => `  ${text}\n`).join('')}`)
    },
  }
}

/** The machine and versions of the measurements. */
export function machine(versions: Readonly<Record<string, string>>): string {
  const processors = cpus()
  return [
    `${processors.length} × ${processors[0]?.model.trim() || process.arch}, ${Math.round(totalmem() / 2 ** 30)} GiB, ` +
      `${type()} ${release()}, load ${loadavg()[0]!.toFixed(1)} before the start`,
    `Bun ${Bun.version}, ${Object.entries(versions)
      .map(([name, version]) => `${name} ${version}`)
      .join(', ')}`,
    'The load generator shares the processors with the measured service; a ratio is the median of pairs measured alternately.',
  ].join('\n')
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

export function spread(ratios: readonly number[]): string {
  return `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0
}

export function whole(value: number): string {
  return Math.round(value).toLocaleString('en-US')
}

export function ms(value: number): string {
  return `${value < 10 ? value.toFixed(2) : Math.round(value)} ms`
}
