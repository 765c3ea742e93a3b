/** Where commands run: a folder and an environment. */
export interface Place {
  readonly name: string
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}

export interface Ran {
  readonly exitCode: number
  readonly output: string
}

/** The environment of this process without what npx has added for it: that names its own folders, and a home. */
export function ownEnvironment(): Place['env'] {
  const kept = Object.entries(process.env).filter(([name]) => !/^(npm_|bun_install|xdg_)/i.test(name))
  const path = (process.env.PATH ?? '').split(':').filter((each) => !/node_modules\/|bun-node/.test(each))
  return { ...(Object.fromEntries(kept) as Place['env']), PATH: path.join(':'), CI: 'true' }
}

/** A command that has started. Its output is collected, and shown at once unless it `isQuiet`. */
export function start(command: readonly string[], { cwd, env }: Place, { isQuiet = false } = {}) {
  const child = Bun.spawn([...command], { cwd, env, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  let output = ''
  const collect = async (stream: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder()
    for await (const chunk of stream) {
      output += decoder.decode(chunk, { stream: true })
      if (!isQuiet) process.stdout.write(chunk)
    }
  }
  const ended = Promise.all([child.exited, collect(child.stdout), collect(child.stderr)])
  return { child, output: () => output, ended: ended.then(([exitCode]): Ran => ({ exitCode, output })) }
}

/** Runs a command to its end. */
export function run(command: readonly string[], place: Place, options?: { readonly isQuiet: boolean }): Promise<Ran> {
  return start(command, place, options).ended
}
