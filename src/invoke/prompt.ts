import { invalid } from '../http/errors.ts'

/** A placeholder, as in `{{CUSTOMER}}`. */
const PLACEHOLDER = /\{\{\s*([A-Za-z_][A-Za-z0-9_.-]*)\s*\}\}/g

/** The names of its placeholders, each once, in the order in which they first stand there. */
export function placeholdersOf(prompt: string): string[] {
  return [...new Set(Array.from(prompt.matchAll(PLACEHOLDER), ([, name]) => name!))]
}

/**
 * The system prompt with its placeholders filled. What a variable brings along is text: a placeholder in it stays as
 * it is. Variables that the prompt does not ask for are left aside: the prompt may be edited while its callers go on.
 *
 * @throws ApiError VALIDATION_ERROR naming a placeholder that has no variable
 */
export function fillPrompt(prompt: string, variables: Readonly<Record<string, string>> = {}): string {
  return prompt.replace(PLACEHOLDER, (_whole, name: string) => {
    if (!Object.hasOwn(variables, name))
      throw invalid(`prompt_variables.${name}`, `required: the prompt of the agent has the placeholder {{${name}}}`)
    return variables[name]!
  })
}
