/** Reads the answers of one connection. */
export interface AnswerReader {
  /**
   * Takes what has arrived.
   * @returns whether the answer is complete; a string says why the request was refused
   */
  take(chunk: Buffer): boolean | string
}

/** @param reply sends bytes to the server outside of a request */
export function readerOf(protocol: string, parts: number, reply: (bytes: string) => void): AnswerReader {
  if (protocol === 'redis') return lineReader(parts, (line) => (line.startsWith('-') ? line : undefined))
  if (protocol === 'nats') return natsReader(parts, reply)
  return protocol === 'postgres' ? postgresReader() : httpReader()
}

/** Collects chunks until `complete` finds the end of an answer in them. */
function collecting(complete: (received: Buffer) => boolean | string): AnswerReader {
  let received: Buffer = Buffer.alloc(0)
  return {
    take(chunk) {
      received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
      const answer = complete(received)
      if (answer !== false) received = Buffer.alloc(0)
      return answer
    },
  }
}

const HEADER_END = '\r\n\r\n'

function httpReader(): AnswerReader {
  return collecting((received) => {
    const end = received.indexOf(HEADER_END)
    if (end < 0) return false
    const head = received.toString('latin1', 0, end)
    const body = received.subarray(end + HEADER_END.length)
    const length = /content-length: (\d+)/i.exec(head)?.[1]
    const isWhole = length === undefined ? body.toString('latin1').endsWith('0\r\n\r\n') : body.length >= Number(length)
    if (!isWhole) return false
    return head[9] === '2' || `${head.slice(0, 30)} ${body.toString('utf8', 0, 300)}`
  })
}

/** An answer of a number of lines. @param refusalOf what a line says if it refuses the request */
function lineReader(lines: number, refusalOf: (line: string) => string | undefined): AnswerReader {
  return collecting((received) => {
    const text = received.toString('latin1')
    const all = text.split('\r\n')
    const refusal = all
      .slice(0, -1)
      .map(refusalOf)
      .find((each) => each !== undefined)
    if (refusal !== undefined) return refusal
    return all.length > lines
  })
}

/** Each published message is acknowledged with a header line and a line of JSON; the server also sends pings. */
function natsReader(messages: number, reply: (bytes: string) => void): AnswerReader {
  let rest = ''
  let left = messages * 2
  return {
    take(chunk) {
      const lines = (rest + chunk.toString('latin1')).split('\r\n')
      rest = lines.pop()!
      for (const line of lines) {
        if (line === 'PING') reply('PONG\r\n')
        else if (line.startsWith('-ERR') || line.includes('"error"')) return line
        // The answer to the greeting.
        else if (line === 'PONG') return true
        else if (!line.startsWith('INFO')) left--
      }
      if (left > 0) return false
      left = messages * 2
      return true
    },
  }
}

/** Messages of a type, a length and content, up to `ReadyForQuery`. */
function postgresReader(): AnswerReader {
  return collecting((received) => {
    let refusal: string | undefined
    for (let at = 0; at + 5 <= received.length; ) {
      const end = at + 1 + received.readInt32BE(at + 1)
      if (end > received.length) return false
      const type = String.fromCharCode(received[at]!)
      if (type === 'E') refusal = received.toString('utf8', at + 5, end).replaceAll('\0', ' ')
      if (type === 'Z') return refusal ?? true
      at = end
    }
    return false
  })
}
