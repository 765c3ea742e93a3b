/**
 * Free-form JSON of a caller (`input`, `output`, `payload`, `error_detail`, `metadata`), kept as the text that was sent.
 *
 * Parsing and printing it again would change it: 64-bit integers lose digits, `1.0` becomes `1`, `__proto__` turns into
 * behaviour. As text it comes back value for value, and costs nothing on the way (contract section 1).
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
  if (value instanceof RawJson) return value.text
  if (value === null || value === undefined) return 'null'
  if (typeof value === 'bigint') return value.toString()
  if (typeof value !== 'object' || value instanceof Date) return JSON.stringify(value) ?? 'null'
  if (Array.isArray(value)) return `[${value.map(encodeJson).join(',')}]`
  let text = ''
  for (const [key, member] of Object.entries(value)) {
    if (member === undefined) continue
    text += `${text === '' ? '' : ','}${JSON.stringify(key)}:${encodeJson(member)}`
  }
  return `{${text}}`
}
