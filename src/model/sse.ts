import { createParser } from 'eventsource-parser'

/** Longest event of a stream, in characters. Bounds the memory used for a server that never ends a line. */
const EVENT_LENGTH_MAX = 32 * 1024 * 1024

/** The stream has an event longer than {@link EVENT_LENGTH_MAX}. */
export class EventTooLong extends Error {}

/** The connection broke; `cause` is the error. */
export class StreamCut extends Error {}

/**
 * Reads an event stream and passes each event on as soon as its bytes have arrived. All events of one read are passed
 * on synchronously: with hundreds of streams, a promise for each event would be most of the work.
 *
 * @param onEvent called with the data and the event name (`message` if it has none); returns true to stop reading
 * @throws EventTooLong, StreamCut, and whatever `onEvent` throws
 */
export async function readEvents(
  body: ReadableStream<Uint8Array>,
  onEvent: (data: string, name: string) => boolean,
): Promise<void> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let isDone = false
  const parser = createParser({
    maxBufferSize: EVENT_LENGTH_MAX,
    onEvent: ({ data, event = 'message' }) => {
      isDone ||= onEvent(data, event)
    },
    onError: ({ type }) => {
      if (type === 'max-buffer-size-exceeded') throw new EventTooLong()
    },
  })
  try {
    while (!isDone) {
      const bytes = await nextBytes(reader)
      // Some servers omit the empty line after their last event.
      parser.feed(bytes === undefined ? `${decoder.decode()}\n\n` : decoder.decode(bytes, { stream: true }))
      if (bytes === undefined) return
    }
  } finally {
    // Closes the connection if there is more to come; otherwise does nothing.
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
