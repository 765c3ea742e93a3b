const MEMBER_NAMES_MAX = 1_000

/**
 * Free-form JSON of a caller (`input`, `output`, `payload`, `error_detail`, `metadata`), kept as the text that was sent
 * (docs/api.md#free-form-objects).
 *
 * Parsing and serializing it would change it: 64-bit integers lose digits, `1.0` becomes `1`, `__proto__` sets the
 * prototype. Keeping the text preserves every value and costs nothing.
 */
export class RawJson {
  /** `text` must be one valid JSON value; `json-reader.ts` guarantees that. */
  constructor(readonly text: string) {}

  static of(value: unknown): RawJson {
    return new RawJson(JSON.stringify(value))
  }

  /** The parsed value. Numbers become doubles. */
  parse(): unknown {
    return JSON.parse(this.text)
  }

  /** For plain `JSON.stringify`. Responses are encoded by {@link encodeJson}, which keeps the text. */
  toJSON(): unknown {
    return this.parse()
  }
}

/** The default of every free-form field. */
export const EMPTY_OBJECT = new RawJson('{}')

/**
 * `JSON.stringify` that writes each {@link RawJson} as its text. `undefined` members are omitted, dates become ISO 8601
 * with milliseconds, and bigints plain digits.
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
  // Our own data and parsed JSON have no inherited members; checking each would slow down every response.
  for (const name in value) {
    const member = (value as Record<string, unknown>)[name]
    if (member !== undefined) text += `${text.length === 1 ? '' : ','}${memberName(name)}:${encodeJson(member)}`
  }
  return `${text}}`
}

/** Member names as JSON. Responses repeat the same few. */
const memberNames = new Map<string, string>()

function memberName(name: string): string {
  let text = memberNames.get(name)
  if (text === undefined) {
    text = JSON.stringify(name)
    if (memberNames.size < MEMBER_NAMES_MAX) memberNames.set(name, text)
  }
  return text
}
