import type { Limits } from '../../base/limits.ts'
import { RawJson } from '../../base/raw-json.ts'
import { textFrom } from '../traces/json-writer.ts'
import { cleanTags, NAME_LENGTH_MAX, type RunDetails, type RunEnd, runEnd, storable } from '../traces/run-details.ts'
import { startOf, writeContent } from './content.ts'
import { ENVIRONMENT, INPUT, METADATA, NAME, OUTPUT, RELEASE, SESSION, TAGS, USER, VERSION } from './fields.ts'
import { Merged } from './merged.ts'
import { endedAtOf, errorOf, textIn } from './observation.ts'

/** Type of the events that say what is known of a trace. */
export const TRACE_UPDATED = 'trace.updated'

/** The agent of a trace without a name, for a workspace key. */
const UNNAMED = 'langfuse'
const METADATA_BYTES_MAX = 64 * 1024
const TAGS_BYTES_MAX = 64 * 1024

/** What a batch says about a run besides its trace. */
export interface RunContext {
  readonly limits: Limits
  /** Unix milliseconds. */
  readonly startedAt: number
  /** The name and input of a root observation, for a trace without them. */
  readonly rootName: string | null
  readonly rootInput: RawJson | null
}

/** Of what is not known. */
const NOTHING = new Merged()

/** @param known of the trace, if anything is */
export function detailsOf(known: Merged | null, { limits, startedAt, rootName, rootInput }: RunContext): RunDetails {
  const trace = known ?? NOTHING
  return {
    agentName: textIn(trace, NAME, NAME_LENGTH_MAX) ?? rootName ?? UNNAMED,
    startedAt,
    externalUserId: textIn(trace, USER, limits.external_id_length),
    sessionId: textIn(trace, SESSION, limits.external_id_length),
    tags: tagsOf(trace, limits),
    metadata: metadataOf(trace),
    input: contentOf(trace, INPUT, limits.run_input_bytes) ?? rootInput,
  }
}

function tagsOf(trace: Merged, limits: Limits): string[] {
  if (trace.end(TAGS) - trace.start(TAGS) > TAGS_BYTES_MAX) return []
  const tags: unknown[] = JSON.parse(trace.json(TAGS) ?? '[]')
  return cleanTags(tags.filter((tag) => typeof tag === 'string' && tag !== '') as string[], limits)
}

function metadataOf(trace: Merged): RawJson {
  let text = '{"source":"langfuse"'
  for (const [field, name] of [
    [NAME, 'name'],
    [RELEASE, 'release'],
    [VERSION, 'version'],
    [ENVIRONMENT, 'environment'],
  ] as const) {
    const value = textIn(trace, field, NAME_LENGTH_MAX)
    if (value !== null) text += `,"${name}":${JSON.stringify(value)}`
  }
  const metadata = trace.range(METADATA)
  if (metadata !== null) {
    const isLarge = metadata.end - metadata.start > METADATA_BYTES_MAX
    text += `,"metadata":${isLarge ? startOf(metadata, METADATA_BYTES_MAX) : trace.json(METADATA)}`
  }
  return new RawJson(storable(`${text}}`))
}

/** The input or output of a trace or an observation for its run; null for none. */
export function contentOf(merged: Merged, field: number, bytesMax: number): RawJson | null {
  const value = merged.range(field)
  return value && new RawJson(storable(textFrom((out) => writeContent(out, value, bytesMax))))
}

/** How a run ends: with the output of its trace, else of its root observation. */
export function endOf(trace: Merged | null, root: Merged | null, now: number, limits: Limits): RunEnd {
  const output = (of: Merged | null) => of && contentOf(of, OUTPUT, limits.run_output_bytes)
  return runEnd(output(trace) ?? output(root), root && errorOf(root), (root && endedAtOf(root)) ?? now)
}
