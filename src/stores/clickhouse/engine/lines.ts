/** The lines of a stream; ends when the other side closes it or ends. */
export async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, undefined> {
  let rest = ''
  for await (const chunk of stream) {
    rest += Buffer.from(chunk).toString('utf8')
    for (let end = rest.indexOf('\n'); end >= 0; end = rest.indexOf('\n')) {
      yield rest.slice(0, end)
      rest = rest.slice(end + 1)
    }
  }
}
