import { COLON } from '../../base/http/json-scan.ts'

/** The members of the bodies that the Langfuse SDKs send, of traces and observations (docs/langfuse.md#mapping). */

/** What the value of a member must be. `null` counts as absent everywhere. */
type FieldKind = 'text' | 'time' | 'level' | 'object' | 'number' | 'list' | 'boolean' | 'any'

interface Field {
  readonly name: string
  readonly kind: FieldKind
  /** The member of a payload in which it is stored as it was sent. */
  readonly stored: string
}

const field = (name: string, kind: FieldKind, stored: string): Field => ({ name, kind, stored })

export const FIELDS: readonly Field[] = [
  field('name', 'text', 'name'),
  field('startTime', 'time', 'start_time'),
  field('endTime', 'time', 'end_time'),
  field('completionStartTime', 'time', 'completion_start_time'),
  field('parentObservationId', 'text', 'parent_observation_id'),
  field('level', 'level', 'observation_level'),
  field('statusMessage', 'text', 'status_message'),
  field('version', 'text', 'version'),
  field('environment', 'text', 'environment'),
  field('model', 'text', 'gen_ai.response.model'),
  field('usage', 'object', 'usage_reported'),
  field('usageDetails', 'object', 'usage_details'),
  field('costDetails', 'object', 'cost_details'),
  field('promptName', 'text', 'prompt_name'),
  field('promptVersion', 'number', 'prompt_version'),
  field('userId', 'text', 'user_id'),
  field('sessionId', 'text', 'session_id'),
  field('release', 'text', 'release'),
  field('tags', 'list', 'tags'),
  field('public', 'boolean', 'public'),
  field('timestamp', 'time', 'timestamp'),
  field('modelParameters', 'object', 'model_parameters'),
  field('metadata', 'any', 'metadata'),
  field('output', 'any', 'output'),
  field('input', 'any', 'input'),
]

export const FIELD_COUNT = FIELDS.length

const at = (name: string): number => FIELDS.findIndex((each) => each.name === name)

export const NAME = at('name')
export const START = at('startTime')
export const END = at('endTime')
export const PARENT = at('parentObservationId')
export const LEVEL = at('level')
export const STATUS_MESSAGE = at('statusMessage')
export const VERSION = at('version')
export const ENVIRONMENT = at('environment')
export const USAGE = at('usage')
export const USAGE_DETAILS = at('usageDetails')
export const COST_DETAILS = at('costDetails')
export const USER = at('userId')
export const SESSION = at('sessionId')
export const RELEASE = at('release')
export const TAGS = at('tags')
export const TIMESTAMP = at('timestamp')
export const METADATA = at('metadata')
export const OUTPUT = at('output')
export const INPUT = at('input')

/** Members of a body that are not merged. */
export const ID = FIELD_COUNT
export const TRACE_ID = FIELD_COUNT + 1
export const BODY_TYPE = FIELD_COUNT + 2
export const MEMBER_COUNT = FIELD_COUNT + 3

/** Finds a name among a few by its bytes, without decoding it. */
export class NameTable {
  private readonly byLength: { readonly bytes: Uint8Array; readonly last: number; readonly index: number }[][] = []

  constructor(names: readonly string[]) {
    names.forEach((name, index) => {
      const bytes = new TextEncoder().encode(name)
      this.byLength[bytes.length] ??= []
      this.byLength[bytes.length].push({ bytes, last: bytes[bytes.length - 1], index })
    })
  }

  /** The index of the name from `start` to `end`, without its quotes; -1 for any other. */
  find(text: Uint8Array, start: number, end: number): number {
    const candidates = this.byLength[end - start]
    if (candidates === undefined) return -1
    const last = text[end - 1]
    for (const candidate of candidates) {
      if (candidate.last === last && isAt(text, start, candidate.bytes)) return candidate.index
    }
    return -1
  }
}

function isAt(text: Uint8Array, start: number, word: Uint8Array): boolean {
  for (let i = 0; i < word.length; i++) if (text[start + i] !== word[i]) return false
  return true
}

/** The names of members of a body, in the order of their indexes. */
export const BODY_NAMES = new NameTable([...FIELDS.map(({ name }) => name), 'id', 'traceId', 'type'])

/** The names under which payloads store the fields, in their order. */
export const STORED_NAMES = new NameTable(FIELDS.map(({ stored }) => stored))

/** For each field, `,"name":` as it is written into a payload. */
export const STORED_MEMBERS: readonly Buffer[] = FIELDS.map(({ stored }) =>
  Buffer.from(`,${JSON.stringify(stored)}${String.fromCharCode(COLON)}`),
)
