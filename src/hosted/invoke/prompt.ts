import { codePoints } from '../../base/code-points.ts'
import { invalid } from '../../base/errors.ts'
import { PLACEHOLDER } from '../../base/placeholders.ts'

/** How much of a placeholder name messages show. */
const NAME_SHOWN_MAX = 200

export interface Filling {
  readonly variables: Readonly<Record<string, string>>
  /** The part of the request that holds the variables, for error messages. */
  readonly path: string
  /** How many characters the filled prompt may have. */
  readonly lengthMax: number
}

/**
 * The system prompt with its placeholders filled. Values are plain text: a placeholder inside a value stays as it is.
 * Variables that the prompt does not use are ignored, so that the prompt can be edited while callers stay the same.
 *
 * The length is summed before anything is filled: a short prompt that repeats a long variable could expand to
 * gigabytes.
 *
 * @throws ApiError VALIDATION_ERROR naming a placeholder without a variable, or the limit
 */
export function fillPrompt(prompt: string, { variables, path, lengthMax }: Filling): string {
  const units = filledUnits(prompt, variables, path)
  // A character has one or two UTF-16 units, so most prompts need not be counted exactly.
  const filled = units > 2 * lengthMax ? null : prompt.replace(PLACEHOLDER, (_whole, name: string) => variables[name]!)
  if (filled === null || (units > lengthMax && codePoints(filled) > lengthMax))
    throw invalid(path, `the agent's prompt, filled in, may have at most ${lengthMax} characters`)
  return filled
}

/** UTF-16 units of the filled prompt. */
function filledUnits(prompt: string, variables: Filling['variables'], path: string): number {
  let units = prompt.length
  for (const [whole, name] of prompt.matchAll(PLACEHOLDER)) {
    if (!Object.hasOwn(variables, name!)) {
      const shown = name!.slice(0, NAME_SHOWN_MAX)
      throw invalid(`${path}.${shown}`, `required: the agent's prompt has the placeholder {{${shown}}}`)
    }
    units += variables[name!]!.length - whole.length
  }
  return units
}
