import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { collectOutput, runTool } from './processes.ts'
import { shared, temporaryDirectory } from './teardown.ts'

const ROOT = join(import.meta.dir, '..', '..')
const TSC = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')

/** Compiles the client library to plain JavaScript for Node. @returns the URL of its module */
export const builtClient = shared(async () => {
  const directory = await temporaryDirectory()
  await compile(['-p', join(ROOT, 'src', 'client'), '--outDir', directory], ROOT)
  await Bun.write(join(directory, 'package.json'), '{"type":"module"}')
  return pathToFileURL(join(directory, 'node.js')).href
})

/** Runs the TypeScript compiler. @throws Error with its output if it finds errors */
export async function compile(args: readonly string[], cwd: string): Promise<void> {
  await runTool([process.execPath, TSC, ...args], cwd)
}

export interface NodeProcess {
  /** Everything it has printed so far. */
  output(): string
  /** Resolves when standard output contains this text. */
  printed(text: string): Promise<void>
  kill(signal: NodeJS.Signals): void
  /** The exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>
}

/** Runs a module in Node, with these variables only. */
export function runNode(code: string, env: Record<string, string>): NodeProcess {
  const child = Bun.spawn(['node', '--input-type=module', '-e', code], {
    env: { PATH: process.env.PATH ?? '', ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const { printed, read, change } = collectOutput(child)
  const output = () => printed.stdout + printed.stderr
  const ended = child.exited.then(async () => {
    await read
    return child.signalCode ?? child.exitCode ?? 0
  })
  return {
    output,
    async printed(text) {
      while (!printed.stdout.includes(text)) {
        const code = await Promise.race([change(), ended])
        if (code !== undefined && !printed.stdout.includes(text)) throw new Error(`ended with ${code}:\n${output()}`)
      }
    },
    kill: (signal) => child.kill(signal),
    ended,
  }
}
