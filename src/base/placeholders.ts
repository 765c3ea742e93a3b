/** A placeholder of a prompt, as in `{{CUSTOMER}}`. */
export const PLACEHOLDER = /\{\{\s*([A-Za-z_][A-Za-z0-9_.-]*)\s*\}\}/g

/** The names of the placeholders, each once, in the order of their first use. */
export function placeholdersOf(prompt: string): string[] {
  return [...new Set(Array.from(prompt.matchAll(PLACEHOLDER), ([, name]) => name!))]
}
