const REDACTED = '•••'
/** Shorter pieces of base64 could match by chance. */
const PIECE_LENGTH_MIN = 8

/**
 * Returns a function that redacts values in texts: as they are, and as encoded in JSON, URLs, forms and base64, including
 * base64 of a longer text that contains the value (`user:value`).
 */
export function redactor(values: readonly string[]): (text: string) => string {
  // Longest first, because one form may be part of another.
  const forms = [...new Set(values.flatMap(formsOf))].sort((a, b) => b.length - a.length)
  return (text) => forms.reduce((rest, form) => rest.replaceAll(form, REDACTED), text)
}

function formsOf(value: string): string[] {
  const inUrl = encodeURIComponent(value)
  const inForm = new URLSearchParams([['', value]]).toString().slice(1)
  const encoded = [inUrl, inForm].flatMap((text) => [text, text.replaceAll(/%[\dA-F]{2}/g, (hex) => hex.toLowerCase())])
  const inJson = escaped(value)
  return [value, inJson, escaped(inJson), ...encoded, ...base64FormsOf(value)]
}

/** The value inside a JSON string; JSON within JSON is escaped once more. */
function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}

/**
 * Base64 encodes three bytes in four characters, so a value inside a longer text has three possible encodings,
 * depending on where it starts. Its first and last characters also depend on its neighbours, so they are not redacted.
 */
function base64FormsOf(value: string): string[] {
  // A header value is sent as Latin-1; a server that echoes it may have read it as UTF-8.
  const forms = (['utf8', 'latin1'] as const).flatMap((charset) => {
    const bytes = Buffer.from(value, charset)
    const pieces = [0, 1, 2].flatMap((before) => {
      const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64')
      const isWhole = (before + bytes.length) % 3 === 0
      const piece = text.replaceAll('=', '').slice(before === 0 ? 0 : before + 1, isWhole ? undefined : -1)
      return piece.length < PIECE_LENGTH_MIN ? [] : [piece]
    })
    return [bytes.toString('base64'), bytes.toString('base64').replaceAll('=', ''), ...pieces]
  })
  return forms.flatMap((form) => [form, form.replaceAll('+', '-').replaceAll('/', '_')])
}
