/** Whether npm has installed the service as a package, where a clone would have its scripts. */
export const IS_PACKAGE = import.meta.dir.includes('/node_modules/')

/**
 * A script of package.json as it works wherever it is typed: with Node alone there is no `bun` on the PATH.
 * @param words the script's name and its arguments
 */
export function script(words: string): string {
  return IS_PACKAGE ? `npx agent-run-service ${words}` : `npx --yes bun run ${words}`
}
