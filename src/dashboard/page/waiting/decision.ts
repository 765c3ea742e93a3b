import { parseIntact } from '../data/json.ts'

/** Sends a decision on a pause. */
export type Decide = (action: 'approve' | 'reject' | 'answer', body: object) => void

/** Parses edited arguments: a JSON object, whose numbers keep their digits. */
export function readArguments(text: string): { readonly value: unknown } | { readonly problem: string } {
  try {
    const value = parseIntact(text)
    return /^\s*\{/.test(text) ? { value } : { problem: 'expected a JSON object, such as {"name": "value"}' }
  } catch (error) {
    return { problem: (error as Error).message }
  }
}

/** A line of a difference between two texts. */
interface DiffLine {
  readonly kind: 'same' | 'removed' | 'added'
  readonly text: string
}

/** Longer texts are compared as a whole. */
const LINES_MAX = 400

/** What changed, line by line, by the longest common subsequence. */
export function diffLines(before: string, after: string): DiffLine[] {
  const a = before.split('\n')
  const b = after.split('\n')
  if (a.length > LINES_MAX || b.length > LINES_MAX) {
    return [
      ...a.map((text) => ({ kind: 'removed' as const, text })),
      ...b.map((text) => ({ kind: 'added' as const, text })),
    ]
  }
  const common = Array.from({ length: a.length + 1 }, () => new Array<number>(b.length + 1).fill(0))
  const at = (i: number, j: number) => common[i]?.[j] ?? 0
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      ;(common[i] as number[])[j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
    }
  }
  const lines: DiffLine[] = []
  let i = 0
  let j = 0
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ kind: 'same', text: a[i] as string })
      i++
      j++
    } else if (i < a.length && (j === b.length || at(i + 1, j) >= at(i, j + 1)))
      lines.push({ kind: 'removed', text: a[i++] as string })
    else lines.push({ kind: 'added', text: b[j++] as string })
  }
  return lines
}
