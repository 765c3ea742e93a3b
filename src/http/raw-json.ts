/**
 * Free-form JSON of a caller (`input`, `output`, `payload`, `error_detail`, `metadata`), kept as the text that was sent.
 *
 * Parsing and printing it again would change it: 64-bit integers lose digits, `1.0` becomes `1`, `__proto__` turns into
 * behaviour. As text it comes back value for value, and costs nothing on the way (docs/specification.md#free-form-objects).
 */
export class RawJson {
  /** `text` must be one valid JSON value; the readers in `json-reader.ts` see to it. */
  constructor(readonly text: string) {}

  static of(value: unknown): RawJson {
    return new RawJson(JSON.stringify(value))
  }

  /** The value, for code that looks inside. Numbers become doubles here. */
  parse(): unknown {
    return JSON.parse(this.text)
  }

  /** What a plain `JSON.stringify` sees. Responses go through {@link encodeJson}, which keeps the text. */
  toJSON(): unknown {
    return this.parse()
  }
}

/** An empty object: the default of every free-form field. */
export const EMPTY_OBJECT = new RawJson('{}')

/**
 * `JSON.stringify` that writes a {@link RawJson} as its own text, wherever it stands. `undefined` members are left out;
 * dates become ISO 8601 with milliseconds; bigints are written as plain digits.
 */
export function encodeJson(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value)
    case 'number':
      return Number.isFinite(value) ? `${value}` : 'null'
    case 'boolean':
    case 'bigint':
      return `${value}`
    case 'object':
      return value === null ? 'null' : encodeObject(value)
    default:
      return 'null'
  }
}

function encodeObject(value: object): string {
  if (value instanceof RawJson) return value.text
  if (value instanceof Date) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(encodeJson).join(',')}]`
  let text = '{'
  // Data of ours and parsed JSON: nothing is inherited. This is on the path of every answer.
  for (const name in value) {
    const member = (value as Record<string, unknown>)[name]
    if (member !== undefined) text += `${text.length === 1 ? '' : ','}${memberName(name)}:${encodeJson(member)}`
  }
  return `${text}}`
}

/** Names of members as JSON. Answers repeat the same few. */
const memberNames = new Map<string, string>()
const MEMBER_NAMES_MAX = 1_000

function memberName(name: string): string {
  let text = memberNames.get(name)
  if (text === undefined) {
    text = JSON.stringify(name)
    if (memberNames.size < MEMBER_NAMES_MAX) memberNames.set(name, text)
  }
  return text
}
