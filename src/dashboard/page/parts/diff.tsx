import { useMemo } from 'preact/hooks'
import { counted } from '../../../base/format.ts'
import { Scrollable } from './scrollable.tsx'

const SIGNS = { same: ' ', removed: '−', added: '+', left: '⋯' }

/** Lines shown around a change, and the smallest number of lines that are left out. */
const CONTEXT = 3
const LEFT_OUT_MIN = 4

/** What changed between two texts, line by line; nothing if they are the same. */
export function Diff({ before, after }: { readonly before: string; readonly after: string }) {
  const lines = useMemo(() => withoutSame(diffLines(before, after)), [before, after])
  if (lines.length === 0) return null
  return (
    <Scrollable as="pre" class="diff" label="Changes">
      {lines.map(({ kind, text }, index) => (
        <span key={index} class={`diff-${kind}`}>
          {SIGNS[kind]} {text}
          {'\n'}
        </span>
      ))}
    </Scrollable>
  )
}

/** The changes with the lines around them: long parts without a change are left out. Nothing if there is no change. */
export function withoutSame(lines: readonly DiffLine[]): readonly DiffLine[] {
  const changes = lines.flatMap(({ kind }, at) => (kind === 'same' ? [] : [at]))
  const shown: DiffLine[] = []
  let end = 0
  for (const at of [...changes, lines.length + CONTEXT]) {
    const start = Math.max(end, at - CONTEXT)
    if (start - end >= LEFT_OUT_MIN) shown.push({ kind: 'left', text: counted(start - end, 'line') })
    else shown.push(...lines.slice(end, start))
    end = Math.min(lines.length, Math.max(end, at + CONTEXT + 1))
    shown.push(...lines.slice(start, end))
  }
  return changes.length === 0 ? [] : shown
}

/** A line of a difference between two texts. */
interface DiffLine {
  readonly kind: keyof typeof SIGNS
  readonly text: string
}

/** Longer texts are compared as a whole. */
const LINES_MAX = 400

/** What changed, line by line, by the longest common subsequence. */
export function diffLines(before: string, after: string): DiffLine[] {
  const a = before.split('\n')
  const b = after.split('\n')
  const isLong = Math.max(a.length, b.length) > LINES_MAX
  /** Length of the longest common subsequence of what follows line i of `a` and line j of `b`. */
  const common = isLong ? [] : a.map(() => new Uint16Array(b.length + 1)).concat(new Uint16Array(b.length + 1))
  const at = (i: number, j: number) => common[i]?.[j] ?? 0
  for (let i = common.length - 2; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--)
      common[i]![j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
  }
  const lines: DiffLine[] = []
  let [i, j] = [0, 0]
  while (i < a.length || j < b.length) {
    if (!isLong && i < a.length && a[i] === b[j]) {
      lines.push({ kind: 'same', text: a[i++]! })
      j++
    } else if (i < a.length && (j === b.length || at(i + 1, j) >= at(i, j + 1))) {
      lines.push({ kind: 'removed', text: a[i++]! })
    } else lines.push({ kind: 'added', text: b[j++]! })
  }
  return lines
}
