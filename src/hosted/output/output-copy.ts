import type { OutputItem, OutputLog } from './output-log.ts'

/**
 * How the output of a run gets from the process that executes it to one whose clients follow it: as lines of JSON, which
 * keep a second {@link OutputLog} equal to the first. So frames and their ids are the same whichever process sends them.
 * The end of the run is not part of it: that is read from the rows.
 */

type Change = OutputItem | { readonly kind: 'delta'; readonly text: string }

/** How much of a log was sent. */
interface CopyPosition {
  readonly items: number
  /** The attempt and the length of the last item, if it is a text: it can still grow, or be replaced. */
  readonly attempt: string | undefined
  readonly length: number
}

export const COPY_START: CopyPosition = { items: 0, attempt: undefined, length: 0 }

/** Keeps a silent connection open. */
export const HEARTBEAT = '\n'

/** Where the executor of a run serves its output to other processes. */
export const COPY_ROUTE = '/internal/runs/:runId/output'

export function copyPath(runId: string): string {
  return COPY_ROUTE.replace(':runId', runId)
}

/** The next change of a log after a position, as a line, and the position after it; null if there is none yet. */
export function nextChange(
  { items }: OutputLog,
  { items: count, attempt, length }: CopyPosition,
): { readonly line: string; readonly position: CopyPosition } | null {
  const sent = items[count - 1]
  if (sent?.kind === 'text') {
    if (sent.attempt !== attempt) return changeOf(sent, count, sent)
    if (sent.content.length > length) return changeOf({ kind: 'delta', text: sent.content.slice(length) }, count, sent)
  }
  const next = items[count]
  if (next === undefined || (next.kind === 'frame' && next.event !== 'tool')) return null
  return changeOf(next, count + 1, next)
}

/** @param items how many were sent after the change @param last the last one of these */
function changeOf(change: Change, items: number, last: OutputItem) {
  const { attempt, content } = last.kind === 'text' ? last : { attempt: undefined, content: '' }
  return { line: `${JSON.stringify(change)}\n`, position: { items, attempt, length: content.length } }
}

/** Applies one line of another process to the copy of its log. */
export function applyChange(copy: OutputLog, line: string): void {
  const change: Change = JSON.parse(line)
  if (change.kind === 'delta') copy.addText(change.text)
  else copy.add(change)
}

/** The lines of a response, without heartbeats. Calls `onData` for whatever arrives. */
export async function* linesOf(body: ReadableStream<Uint8Array>, onData: () => void): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let begun = ''
  for await (const bytes of body) {
    onData()
    const [first = '', ...more] = decoder.decode(bytes, { stream: true }).split('\n')
    begun += first
    for (const next of more) {
      if (begun !== '') yield begun
      begun = next
    }
  }
}
