const SECONDS_OF = new Map([
  ['s', 1],
  ['m', 60],
  ['h', 3_600],
  ['d', 86_400],
])
const DURATION = /^([1-9]\d{0,8})([smhd])$/

/** Seconds of a duration such as `30s`, `5m`, `1h` or `1d`; null for any other text. */
export function parseDuration(text: string): number | null {
  const [, count, unit = ''] = DURATION.exec(text) ?? []
  return count === undefined ? null : Number(count) * (SECONDS_OF.get(unit) ?? 1)
}

/** A duration in the largest unit that it is a multiple of: 3600 is `1h`. */
export function formatDuration(seconds: number): string {
  const [unit, size] = [...SECONDS_OF].findLast(([, each]) => seconds % each === 0) ?? ['s', 1]
  return `${seconds / size}${unit}`
}
