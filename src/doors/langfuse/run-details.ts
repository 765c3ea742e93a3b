import type { Limits } from '../../base/limits.ts'
import { RawJson } from '../../base/raw-json.ts'
import { textFrom } from '../traces/json-writer.ts'
import { cleanText } from '../traces/mapping.ts'
import { type RunDetails, type RunEnd, storable } from '../traces/run-details.ts'
import { startOf, writeContent } from './content.ts'
import {
  ENVIRONMENT,
  INPUT,
  METADATA,
  NAME,
  OUTPUT,
  RELEASE,
  SESSION,
  STATUS_MESSAGE,
  TAGS,
  USER,
  VERSION,
} from './fields.ts'
import type { Merged } from './merged.ts'
import { endedAtOf, hasFailed, textOf } from './observation.ts'

/** Type of the events that say what is known of a trace. */
export const TRACE_UPDATED = 'trace.updated'

/** The agent of a trace without a name, for a workspace key. */
const UNNAMED = 'langfuse'
const NAME_LENGTH_MAX = 200
const METADATA_BYTES_MAX = 64 * 1024
const TAGS_BYTES_MAX = 64 * 1024
const ERROR_LENGTH_MAX = 10_000

/** What a batch says about a run besides its trace. */
export interface RunContext {
  readonly limits: Limits
  /** Unix milliseconds. */
  readonly startedAt: number
  /** The name and input of a root observation, for a trace without them. */
  readonly rootName: string | null
  readonly rootInput: RawJson | null
}

/** @param trace what is known of it, if anything is */
export function detailsOf(trace: Merged | null, { limits, startedAt, rootName, rootInput }: RunContext): RunDetails {
  const text = (field: number, lengthMax: number) => (trace === null ? null : textOf(trace, field, lengthMax))
  return {
    agentName: text(NAME, NAME_LENGTH_MAX) ?? rootName ?? UNNAMED,
    startedAt,
    externalUserId: text(USER, limits.external_id_length),
    sessionId: text(SESSION, limits.external_id_length),
    tags: trace === null ? [] : tagsOf(trace, limits),
    metadata: metadataOf(trace),
    input: (trace === null ? null : contentOf(trace, INPUT, limits.run_input_bytes)) ?? rootInput,
  }
}

function tagsOf(trace: Merged, limits: Limits): string[] {
  if (!trace.has(TAGS) || trace.end(TAGS) - trace.start(TAGS) > TAGS_BYTES_MAX) return []
  const tags: unknown[] = JSON.parse(trace.json(TAGS) ?? '[]')
  const texts = tags.filter((tag) => typeof tag === 'string' && tag !== '') as string[]
  return texts.slice(0, limits.tags).map((tag) => cleanText(tag, limits.tag_length))
}

function metadataOf(trace: Merged | null): RawJson {
  let text = '{"source":"langfuse"'
  if (trace !== null) {
    for (const [field, name] of [
      [NAME, 'name'],
      [RELEASE, 'release'],
      [VERSION, 'version'],
      [ENVIRONMENT, 'environment'],
    ] as const) {
      const value = textOf(trace, field, NAME_LENGTH_MAX)
      if (value !== null) text += `,"${name}":${JSON.stringify(value)}`
    }
    const metadata = trace.has(METADATA)
      ? trace.end(METADATA) - trace.start(METADATA) > METADATA_BYTES_MAX
        ? startOf(
            { text: trace.textOf(METADATA), start: trace.start(METADATA), end: trace.end(METADATA) },
            METADATA_BYTES_MAX,
          )
        : trace.json(METADATA)
      : undefined
    if (metadata !== undefined) text += `,"metadata":${metadata}`
  }
  return new RawJson(storable(`${text}}`))
}

/** The input or output of a trace or an observation for its run; null for none. */
export function contentOf(merged: Merged, field: number, bytesMax: number): RawJson | null {
  if (!merged.has(field)) return null
  const value = { text: merged.textOf(field), start: merged.start(field), end: merged.end(field) }
  return new RawJson(storable(textFrom((out) => writeContent(out, value, bytesMax))))
}

/** How a run ends: with the output of its trace, else of its root observation. */
export function endOf(trace: Merged | null, root: Merged | null, now: number, limits: Limits): RunEnd {
  const output =
    (trace === null ? null : contentOf(trace, OUTPUT, limits.run_output_bytes)) ??
    (root === null ? null : contentOf(root, OUTPUT, limits.run_output_bytes)) ??
    new RawJson('{}')
  const at = (root === null ? null : endedAtOf(root)) ?? now
  if (root === null || !hasFailed(root)) return { to: 'completed', output, errorMessage: null, errorDetail: null, at }
  const errorMessage = textOf(root, STATUS_MESSAGE, ERROR_LENGTH_MAX) ?? 'error'
  return { to: 'failed', output: null, errorMessage, errorDetail: output, at }
}
