import { ApiError } from '../../../base/errors.ts'
import { toProtobuf } from './json.ts'
import type { ThreadReply, ThreadRequest } from './json-converter.ts'

/** The thread of {@link JsonConverter}: parses one body after the other. */

declare const self: Worker

self.onmessage = ({ data: { call, body, shape } }: MessageEvent<ThreadRequest>) => {
  try {
    // The buffer that it was written to has room for more.
    const bytes = new Uint8Array(toProtobuf(body, shape))
    self.postMessage({ call, bytes } satisfies ThreadReply, [bytes.buffer])
  } catch (error) {
    const problems = error instanceof ApiError ? error.problems : undefined
    const reply = problems === undefined ? { error: `${error}` } : { problems }
    self.postMessage({ call, ...reply } satisfies ThreadReply)
  }
}
