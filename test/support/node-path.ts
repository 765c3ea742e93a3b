/**
 * Makes `node` mean Node in the processes that this one starts with `env: process.env`: `bun run` puts a directory before
 * all others in `PATH` in which `node` is Bun.
 */
export function useRealNode(): void {
  const directories = (process.env.PATH ?? '').split(':')
  process.env.PATH = directories.filter((directory) => !/\/bun-node[^/]*$/.test(directory)).join(':')
}
