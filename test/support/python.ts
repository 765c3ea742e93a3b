import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { atEnd, shared, temporaryDirectory } from './teardown.ts'

export const PACKAGE = join(import.meta.dir, '..', '..', 'src', 'client', 'python')
export const python = Bun.which('python3')

/** The Python client. A copy, because Python writes its bytecode beside it. */
const library = shared(async () => {
  const directory = await temporaryDirectory()
  await cp(join(PACKAGE, 'agent_run_service'), join(directory, 'agent_run_service'), { recursive: true })
  return directory
})

/** Starts a Python program that can import the client, with these variables only. */
export async function startPython(code: string, env: Record<string, string> = {}) {
  const child = Bun.spawn([python!, '-u', '-c', `${IMPORT}${code}`], {
    env: { PATH: process.env.PATH ?? '', PYTHONPATH: await library(), ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  atEnd(async () => child.kill('SIGKILL'))
  return child
}

const IMPORT = 'import json, os, signal, sys, threading, time\nfrom agent_run_service import *\n'

/** Runs a Python program. @returns what it printed @throws Error with that when it fails */
export async function runPython(code: string, env: Record<string, string> = {}): Promise<string> {
  const child = await startPython(code, env)
  const [output, problems] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  const exit = await child.exited
  if (exit !== 0) throw new Error(`ended with ${exit}:\n${output}${problems}`)
  return output + problems
}
