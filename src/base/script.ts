/**
 * A script of package.json as it works wherever it is typed: with Node alone there is no `bun` on the PATH.
 * @param words the script's name and its arguments
 */
export function script(words: string): string {
  return `npx --yes bun run ${words}`
}
