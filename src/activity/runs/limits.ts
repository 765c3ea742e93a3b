import { ApiError, invalid } from '../../base/errors.ts'
import { textProblem } from '../../base/http/schema.ts'
import { shown } from '../../base/http/validation-message.ts'
import type { Limits } from '../../base/limits.ts'
import type { RawJson } from '../../base/raw-json.ts'

/**
 * The configured limits of a request, which no schema can know. `path` is a path into the request, such as `task.name`
 * (docs/api.md#request-limits).
 */

/** @throws ApiError VALIDATION_ERROR for text that is too long or that Postgres would refuse */
export function checkText(path: string, text: string | undefined, maxLength: number, minLength = 0): void {
  if (text === undefined) return
  const problem = textProblem(text, { minLength, maxLength })
  if (problem !== null) throw invalid(path, `${problem}; got ${shown(text)}`)
}

/** @throws ApiError PAYLOAD_TOO_LARGE for JSON of more than `bytesMax` bytes */
export function checkSize(path: string, value: RawJson | undefined, bytesMax: number): void {
  if (value === undefined) return
  const bytes = Buffer.byteLength(value.text)
  if (bytes <= bytesMax) return
  throw new ApiError('PAYLOAD_TOO_LARGE', `${path}: expected at most ${bytesMax} bytes; got ${bytes}`, { param: path })
}

/** @throws ApiError VALIDATION_ERROR */
export function checkTags(tags: readonly string[] | undefined, limits: Limits): void {
  if (tags === undefined) return
  if (tags.length > limits.tags) throw invalid('tags', `expected at most ${limits.tags} tags; got ${tags.length}`)
  tags.forEach((tag, index) => {
    checkText(`tags[${index}]`, tag, limits.tag_length, 1)
  })
}
