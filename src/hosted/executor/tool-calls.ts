import { shown } from '../../base/http/validation-message.ts'
import { mint } from '../../base/ids.ts'
import { RawJson } from '../../base/raw-json.ts'
import type { ModelAnswer, ModelToolCall } from '../../outbound/model/model.ts'
import type { SchemaChecks } from '../../outbound/model/output-schema.ts'
import type { OutputLog } from '../output/output-log.ts'
import type { Call, Pause } from '../run/run.ts'
import type { Toolbox } from '../tools/toolbox.ts'

interface StepOptions {
  readonly step: number
  readonly toolbox: Toolbox
  readonly schemas: SchemaChecks
  /** Numbers the frames of the output stream. */
  readonly log: OutputLog
  /** When a question to a person expires; null: never. */
  readonly expiresAt: Date | null
}

/** The calls that an answer requests: each started, held for a person, or already failed. */
export function callsOf(answer: ModelAnswer, options: StepOptions): { calls: Call[]; pauses: Pause[] } {
  const calls: Call[] = []
  const pauses: Pause[] = []
  answer.toolCalls.forEach((asked, position) => {
    const { call, pause } = callOf(asked, position, options)
    calls.push(call)
    if (pause !== null) pauses.push(pause)
  })
  return { calls, pauses }
}

function callOf(asked: ModelToolCall, position: number, options: StepOptions): { call: Call; pause: Pause | null } {
  const { step, toolbox, schemas, log, expiresAt } = options
  const base = {
    callId: mint.uuid(),
    step,
    position,
    toolCallId: asked.id,
    tool: asked.name,
    childRunId: null,
    output: null,
    startedFrame: null,
    finishedFrame: null,
    durationMs: null,
  }
  const entry = toolbox.get(asked.name)
  const checked = entry && schemas.checkArguments(entry.tool.parameters, asked.arguments)
  if (checked === undefined || 'problem' in checked) {
    const problem =
      checked?.problem ?? `there is no tool ${shown(asked.name)}; there are: ${[...toolbox.keys()].join(', ')}`
    const input = RawJson.of({})
    const failed = {
      ...base,
      input,
      status: 'failed' as const,
      output: failure(problem),
      finishedFrame: log.nextFrameNumber(),
    }
    return { call: failed, pause: null }
  }
  const input = RawJson.of(checked.value)
  const held = { pauseId: mint.uuid(), callId: base.callId, expiresAt }
  if (entry!.kind === 'input') {
    const { question, options: choices = null } = checked.value as { question: string; options?: string[] }
    const asks = { question: storable(question), options: choices?.map(storable) ?? null }
    const pause: Pause = { ...held, type: 'input', tool: null, input: null, ...asks, frame: log.nextFrameNumber() }
    return { call: { ...base, input, status: 'held' }, pause }
  }
  const childRunId = entry!.kind === 'agent' ? mint.uuid() : null
  if (entry!.tool.requiresApproval) {
    const noQuestion = { question: null, options: null, frame: log.nextFrameNumber() }
    const pause: Pause = { ...held, type: 'approval', tool: asked.name, input, ...noQuestion }
    return { call: { ...base, input, childRunId, status: 'held' }, pause }
  }
  return { call: { ...base, input, childRunId, status: 'started', startedFrame: log.nextFrameNumber() }, pause: null }
}

/** The result of a failed call, for the model. */
export function failure(error: string): RawJson {
  return RawJson.of({ error })
}

/** Distinguishes the attempts at one answer of a run. */
export function attemptName(): string {
  return mint.ulid().slice(-8).toLowerCase()
}

/** Text without the characters that Postgres refuses: a model may write anything. */
export function storable(text: string): string {
  return text.includes('\0') || !text.isWellFormed() ? text.toWellFormed().replaceAll('\0', '\uFFFD') : text
}

/** An answer of the model without characters that Postgres refuses. */
export function storableAnswer(answer: ModelAnswer): ModelAnswer {
  const orNull = (text: string | null) => (text === null ? null : storable(text))
  const toolCalls = answer.toolCalls.map((call) => ({ ...call, id: storable(call.id), name: storable(call.name) }))
  return { ...answer, content: orNull(answer.content), refusal: orNull(answer.refusal), toolCalls }
}
