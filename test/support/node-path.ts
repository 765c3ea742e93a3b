/**
 * Makes `node` mean Node in this process and those it starts: `bun run` puts a directory before all others in `PATH` in
 * which `node` is Bun.
 */
export function useRealNode(): void {
  const directories = (process.env.PATH ?? '').split(':')
  process.env.PATH = directories.filter((directory) => !/\/bun-node[^/]*$/.test(directory)).join(':')
}
