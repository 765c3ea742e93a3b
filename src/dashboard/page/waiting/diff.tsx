import { useMemo } from 'preact/hooks'
import { diffLines } from './decision.ts'

const SIGNS = { same: ' ', removed: '−', added: '+' }

/** What changed between two texts, line by line; nothing if they are the same. */
export function Diff({ before, after }: { readonly before: string; readonly after: string }) {
  const lines = useMemo(() => diffLines(before, after), [before, after])
  if (lines.every(({ kind }) => kind === 'same')) return null
  return (
    <pre class="diff" tabIndex={0} role="group" aria-label="Changes">
      {lines.map(({ kind, text }, index) => (
        <span key={index} class={`diff-${kind}`}>
          {SIGNS[kind]} {text}
          {'\n'}
        </span>
      ))}
    </pre>
  )
}
