/** An image, a sound or a file in a message. The page shows what it is, never its bytes. */
export interface Media {
  /** `image`, `audio`, … */
  readonly name: string
  readonly mediaType: string | null
  readonly bytes: number | null
  /** Its address, if it is on the web. */
  readonly href: string | null
}

/** Shorter strings are shown as they are. */
const BLOB_LENGTH_MIN = 200
const DATA_URL = /^data:([\w.+-]+\/[\w.+-]+)?[^,]{0,200};base64,/
/** A string of only these characters and at least this length is not text. */
const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/
const BASE64_LENGTH_MIN = 1_000
/** Only this much of a string is tested; the rest is alike. */
const TESTED_LENGTH = 4_000
const DEPTH_MAX = 100

/** The media that a string encodes in base64; null if it is a text. */
export function blobIn(text: string): Media | null {
  if (text.length < BLOB_LENGTH_MIN) return null
  const url = DATA_URL.exec(text.slice(0, 400))
  if (url !== null) {
    const mediaType = url[1] ?? null
    return { name: nameOf(mediaType), mediaType, bytes: sizeOf(text.length - url[0].length), href: null }
  }
  if (text.length < BASE64_LENGTH_MIN || !BASE64.test(text.slice(0, TESTED_LENGTH).replaceAll(/[\r\n]/g, '')))
    return null
  // Words without spaces, such as a long hash or a list of digits, have fewer kinds of characters.
  if (new Set(text.slice(0, BASE64_LENGTH_MIN)).size < 24) return null
  return { name: 'base64', mediaType: null, bytes: sizeOf(text.length), href: null }
}

/** The value with a note in place of each string that encodes bytes: nobody reads those, and they slow the page down. */
export function withoutBlobs(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') {
    const media = blobIn(value)
    return media === null ? value : `(${mediaText(media)})`
  }
  if (typeof value !== 'object' || value === null || depth > DEPTH_MAX || isExactNumber(value)) return value
  if (Array.isArray(value)) return mapped(value, (each) => withoutBlobs(each, depth + 1))
  const entries = Object.entries(value)
  const next = mapped(entries, (entry) => {
    const shown = withoutBlobs(entry[1], depth + 1)
    return shown === entry[1] ? entry : ([entry[0], shown] as [string, unknown])
  })
  return next === entries ? value : Object.fromEntries(next)
}

/** `image, image/png, 48 kB`. */
export function mediaText({ name, mediaType, bytes }: Media): string {
  const size = bytes === null ? null : bytes < 1_000 ? `${bytes} B` : `${Math.round(bytes / 1_000).toLocaleString()} kB`
  return [name, mediaType, size].filter((each) => each !== null).join(', ')
}

/** The same list if nothing changes. */
function mapped<T>(list: T[], change: (each: T) => T): T[] {
  const next = list.map(change)
  return next.some((each, index) => each !== list[index]) ? next : list
}

/** A number that {@link parseIntact} keeps as text. */
function isExactNumber(value: object): boolean {
  return (JSON as { isRawJSON?: (value: unknown) => boolean }).isRawJSON?.(value) ?? false
}

function nameOf(mediaType: string | null): string {
  const [kind = ''] = mediaType?.split('/') ?? []
  return kind === 'image' || kind === 'audio' || kind === 'video' ? kind : 'file'
}

function sizeOf(length: number): number {
  return Math.floor(length * 0.75)
}
