import type { RunIdentity } from '../../base/ids.ts'
import { encodeJson } from '../../base/raw-json.ts'
import {
  type Call,
  type PendingPause,
  pausedStatus,
  publicPause,
  type RunOutcome,
  type RunProgress,
} from '../run/run.ts'

/**
 * The output of a hosted run, in order, for streams that may start at any position
 * (docs/hosted-agents.md#output-streams). Everything in it follows from the stored steps and calls, so it is the same
 * after a restart; only the text of an answer in progress exists nowhere else.
 *
 * The id of a frame has three members: step, part (0 text, 1 tools and pauses, 2 the end) and offset. In part 1 the
 * offset is the frame's number; in part 0 it is the number of characters so far, and a fourth member names the attempt:
 * after a crash the model may write something else.
 */

/** The outputs of the runs that this process executes. */
export interface LiveOutputs {
  outputOf(run: RunIdentity): OutputLog | undefined
  /** Resolves when the state of a run may have changed, or when no change was reported for a while. */
  change(run: RunIdentity, signal: AbortSignal): Promise<void>
}

export type OutputItem = TextItem | FrameItem

interface TextItem {
  readonly kind: 'text'
  readonly step: number
  attempt: string
  content: string
}

interface FrameItem {
  readonly kind: 'frame'
  readonly step: number
  readonly part: 1 | 2
  readonly offset: number
  readonly event: 'tool' | 'done' | 'error' | 'awaiting_approval' | 'awaiting_input'
  /** JSON text. */
  readonly data: string
}

export const OUTPUT_START: OutputPosition = { step: 0, part: 0, offset: 0, attempt: undefined }

const ID = /^(\d{1,9})\.([012])\.(\d{1,12})(?:\.(\w{1,20}))?$/

export class OutputLog {
  readonly items: OutputItem[] = []
  /** Nothing more will come: the executor has stopped. */
  isClosed = false
  private readonly listeners = new Set<() => void>()
  private frames = 0

  constructor(readonly runId: string) {}

  /** The output of a run so far, from its rows. */
  static of({ run, steps, calls }: Pick<RunProgress, 'run' | 'steps' | 'calls'>): OutputLog {
    const log = new OutputLog(run.runId)
    for (const { step, attempt, content } of steps) {
      log.items.push({ kind: 'text', step, attempt, content: content ?? '' })
      const frames = calls.filter((call) => call.step === step).flatMap((call) => toolItems(run.runId, call))
      log.items.push(...frames.sort((a, b) => a.offset - b.offset))
    }
    for (const { startedFrame, finishedFrame } of calls)
      log.frames = Math.max(log.frames, startedFrame ?? 0, finishedFrame ?? 0)
    return log
  }

  /** The number of the next frame of the run. */
  nextFrameNumber(): number {
    return ++this.frames
  }

  /** Skips the numbers of pauses, which are stored in other rows. */
  skipFrameNumbers(through: number): void {
    this.frames = Math.max(this.frames, through)
  }

  get lastStep(): number {
    return this.items.at(-1)?.step ?? 0
  }

  beginText(step: number, attempt: string): void {
    const last = this.items.at(-1)
    if (last?.kind === 'text' && last.step === step) {
      last.attempt = attempt
      last.content = ''
    } else this.items.push({ kind: 'text', step, attempt, content: '' })
  }

  /** Appends an item, or replaces the text of an abandoned attempt, as another process has it. */
  add(item: OutputItem): void {
    if (item.kind === 'text') {
      this.beginText(item.step, item.attempt)
      this.addText(item.content)
    } else {
      this.items.push(item)
      this.notify()
    }
  }

  addText(delta: string): void {
    const last = this.items.at(-1)
    if (last?.kind !== 'text') return
    last.content += delta
    this.notify()
  }

  /** Appends the last frame that a call has so far. */
  addCall(call: Call): void {
    this.items.push(...toolItems(this.runId, call).slice(-1))
    this.notify()
  }

  /** Appends the final frame, if the outcome has one, and closes the log. */
  close(outcome: RunOutcome, sessionId: string | null): void {
    const item = outcomeItem(this, outcome, sessionId)
    if (item !== null) this.items.push(item)
    this.isClosed = true
    this.notify()
  }

  listen(listener: () => void): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  /** Whether it has listeners. */
  get isFollowed(): boolean {
    return this.listeners.size > 0
  }

  private notify(): void {
    for (const listener of this.listeners) listener()
  }
}

/** The frames that a call has so far. */
function toolItems(runId: string, call: Call): FrameItem[] {
  const about = { run_id: runId, tool_call_id: call.toolCallId, name: call.tool }
  const item = (offset: number, data: object): FrameItem => ({
    kind: 'frame',
    step: call.step,
    part: 1,
    offset,
    event: 'tool',
    data: encodeJson({ ...about, ...data }),
  })
  const items: FrameItem[] = []
  if (call.startedFrame !== null) items.push(item(call.startedFrame, { phase: 'started', input: call.input }))
  if (call.finishedFrame !== null)
    items.push(
      item(call.finishedFrame, {
        phase: call.status,
        output: call.output,
        duration_ms: call.durationMs ?? undefined,
      }),
    )
  return items
}

function outcomeItem(log: OutputLog, outcome: RunOutcome, sessionId: string | null): FrameItem | null {
  const run_id = log.runId
  const end = (event: FrameItem['event'], data: object): FrameItem => ({
    kind: 'frame',
    step: log.lastStep,
    part: 2,
    offset: 0,
    event,
    data: encodeJson({ run_id, ...data }),
  })
  if (outcome.kind === 'released') return null
  if (outcome.kind === 'paused') return pauseItem(log, outcome.pending)
  const { status, output, usage } = outcome
  if (status === 'completed') return end('done', { output, session_id: sessionId, status, usage })
  const { reason } = (outcome.errorDetail?.parse() ?? {}) as { reason?: unknown }
  const code = typeof reason === 'string' ? reason : status
  return end('error', { code, message: outcome.errorMessage ?? status, status, usage })
}

/** Has the offset of the last frame, so that every frame after the decision has a higher one. */
function pauseItem(log: OutputLog, pending: PendingPause): FrameItem {
  const last = log.items.at(-1)
  return {
    kind: 'frame',
    step: log.lastStep,
    part: 1,
    offset: last?.kind === 'frame' && last.part === 1 ? last.offset : 0,
    event: pausedStatus(pending),
    data: encodeJson({ run_id: log.runId, ...publicPause(pending) }),
  }
}

/** The position of a reader in the log. */
export interface OutputPosition {
  readonly step: number
  readonly part: number
  readonly offset: number
  readonly attempt: string | undefined
}

/** Null for a text that is not the id of a frame. */
export function parseOutputId(text: string): OutputPosition | null {
  const [, step, part, offset, attempt] = ID.exec(text) ?? []
  return step === undefined ? null : { step: Number(step), part: Number(part), offset: Number(offset), attempt }
}

/** The position of a reader who has seen everything that is in the log now. */
export function endOf(log: OutputLog): OutputPosition {
  const last = log.items.at(-1)
  if (last === undefined) return OUTPUT_START
  if (last.kind === 'text') return { step: last.step, part: 0, offset: last.content.length, attempt: last.attempt }
  return { step: last.step, part: last.part, offset: last.offset, attempt: undefined }
}

/** What follows a position in the log as SSE text, and the position after it. */
export function framesAfter(
  log: OutputLog,
  from: OutputPosition,
): { text: string; position: OutputPosition; isOver: boolean } {
  let position = from
  let text = ''
  for (const item of log.items) {
    if (item.kind === 'text') {
      if (item.step < position.step || (item.step === position.step && position.part > 0)) continue
      const isKnown = item.step === position.step
      const seen = isKnown && item.attempt === position.attempt ? position.offset : 0
      // Text of an abandoned attempt is retracted, even if nothing replaces it.
      const isTakenBack = isKnown && seen === 0 && position.offset > 0
      if (item.content.length > seen || isTakenBack) {
        const delta = item.content.slice(seen)
        const data = encodeJson({ run_id: log.runId, delta, step: item.step, offset: seen })
        position = { step: item.step, part: 0, offset: item.content.length, attempt: item.attempt }
        text += frame(`${item.step}.0.${item.content.length}.${item.attempt}`, 'chunk', data)
      }
      continue
    }
    if (isSeen(item, position)) continue
    position = { step: item.step, part: item.part, offset: item.offset, attempt: undefined }
    text += frame(`${item.step}.${item.part}.${item.offset}`, item.event, item.data)
  }
  // Also true for a reader who has already seen the end.
  const last = log.items.at(-1)
  return { text, position, isOver: last?.kind === 'frame' && last.event !== 'tool' }
}

function isSeen(item: FrameItem, position: OutputPosition): boolean {
  // No reader may miss the end, not even one that has seen text of a step that was never stored.
  if (item.part === 2) return position.part === 2
  if (item.step !== position.step) return item.step < position.step
  const isPause = item.event === 'awaiting_approval' || item.event === 'awaiting_input'
  return item.part < position.part || (item.part === position.part && item.offset <= position.offset && !isPause)
}

/** JSON text of callers may contain line breaks, which SSE data must not. */
function frame(id: string, event: string, data: string): string {
  return `id: ${id}\nevent: ${event}\ndata: ${data.replace(/[\r\n]+/g, ' ')}\n\n`
}
