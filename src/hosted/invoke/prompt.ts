import { codePoints } from '../../http/code-points.ts'
import { invalid } from '../../http/errors.ts'

/** A placeholder, as in `{{CUSTOMER}}`. */
const PLACEHOLDER = /\{\{\s*([A-Za-z_][A-Za-z0-9_.-]*)\s*\}\}/g

/** Of the name of a placeholder, in messages. */
const NAME_SHOWN_MAX = 200

/** The names of its placeholders, each once, in the order in which they first stand there. */
export function placeholdersOf(prompt: string): string[] {
  return [...new Set(Array.from(prompt.matchAll(PLACEHOLDER), ([, name]) => name!))]
}

export interface Filling {
  readonly variables: Readonly<Record<string, string>>
  /** Where the variables come from, for error messages. */
  readonly place: string
  /** Characters that the filled prompt may have. */
  readonly lengthMax: number
}

/**
 * The system prompt with its placeholders filled. What a variable brings along is text: a placeholder in it stays as
 * it is. Variables that the prompt does not ask for are left aside: the prompt may be edited while its callers go on.
 *
 * The length is added up before anything is filled: a short prompt that repeats a long variable can come to gigabytes.
 *
 * @throws ApiError VALIDATION_ERROR naming a placeholder that has no variable, or the place and the limit
 */
export function fillPrompt(prompt: string, { variables, place, lengthMax }: Filling): string {
  const units = filledUnits(prompt, variables, place)
  // A character is one or two units, so most prompts are judged without being counted.
  const filled = units > 2 * lengthMax ? null : prompt.replace(PLACEHOLDER, (_whole, name: string) => variables[name]!)
  if (filled === null || (units > lengthMax && codePoints(filled) > lengthMax))
    throw invalid(place, `the prompt of the agent, filled with them, may have at most ${lengthMax} characters`)
  return filled
}

/** UTF-16 units that the filled prompt will have. */
function filledUnits(prompt: string, variables: Filling['variables'], place: string): number {
  let units = prompt.length
  for (const [whole, name] of prompt.matchAll(PLACEHOLDER)) {
    if (!Object.hasOwn(variables, name!)) {
      const shown = name!.slice(0, NAME_SHOWN_MAX)
      throw invalid(`${place}.${shown}`, `required: the prompt of the agent has the placeholder {{${shown}}}`)
    }
    units += variables[name!]!.length - whole.length
  }
  return units
}
