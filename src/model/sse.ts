/** Longest event of a stream, in characters: what a server that never ends a line can make us hold. */
const EVENT_LENGTH_MAX = 32 * 1024 * 1024

/** An event stream that holds an event longer than any answer may be. */
export class EventTooLong extends Error {}

/** The connection broke; `cause` says how. */
export class StreamCut extends Error {}

/**
 * Reads an event stream and tells each event, as soon as its bytes are there, however they were cut into pieces. The
 * events of one read are told in one go: at hundreds of streams, a promise for each would be most of the work.
 *
 * @param onEvent called with the data and the name (`message` if it has none); answers true to read no further
 * @throws EventTooLong, StreamCut, and what `onEvent` throws
 */
export async function readEvents(
  body: ReadableStream<Uint8Array>,
  onEvent: (data: string, name: string) => boolean,
): Promise<void> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  const events = new EventParser(onEvent)
  try {
    for (;;) {
      const bytes = await nextBytes(reader)
      // Servers forget the empty line after their last event.
      const text = bytes === undefined ? `${decoder.decode()}\n\n` : decoder.decode(bytes, { stream: true })
      if (events.take(text) || bytes === undefined) return
    }
  } finally {
    // Closes the connection if there is more to come; does nothing if there is not.
    reader.cancel().catch(() => {})
  }
}

async function nextBytes(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<Uint8Array | undefined> {
  try {
    const { value, done } = await reader.read()
    return done ? undefined : value
  } catch (cause) {
    throw new StreamCut('the connection broke', { cause })
  }
}

/** The lines of a stream, put together to events. */
class EventParser {
  private rest = ''
  private data: string | undefined
  private name = 'message'

  constructor(private readonly onEvent: (data: string, name: string) => boolean) {}

  /** @returns true once `onEvent` wants no more */
  take(text: string): boolean {
    // A line may come in a thousand pieces: only the new one is searched for its end.
    let end = text.indexOf('\n')
    if (end < 0) return this.keep(this.rest + text)
    let line = this.rest + text.slice(0, end)
    for (;;) {
      if (this.line(line.endsWith('\r') ? line.slice(0, -1) : line)) return true
      const start = end + 1
      end = text.indexOf('\n', start)
      if (end < 0) return this.keep(text.slice(start))
      line = text.slice(start, end)
    }
  }

  private keep(rest: string): false {
    if (rest.length > EVENT_LENGTH_MAX) throw new EventTooLong()
    this.rest = rest
    return false
  }

  private line(line: string): boolean {
    if (line === '') {
      const { data, name } = this
      this.data = undefined
      this.name = 'message'
      return data !== undefined && this.onEvent(data, name)
    }
    if (line.startsWith('data:')) {
      const value = line.slice(line.charCodeAt(5) === SPACE ? 6 : 5)
      this.data = this.data === undefined ? value : `${this.data}\n${value}`
      if (this.data.length > EVENT_LENGTH_MAX) throw new EventTooLong()
    } else if (line.startsWith('event:')) this.name = line.slice(6).trim()
    return false
  }
}

const SPACE = 0x20
