import { join } from 'node:path'

/** Types of TypeScript for an OpenAPI document, made by `openapi-typescript`. */

const ROOT = join(import.meta.dir, '..', '..')

/**
 * The generator needs the compiler API of TypeScript 6, which TypeScript 7 does not have. It runs in its own process, where
 * the `typescript` module is replaced.
 */
const GENERATE = `
import typescript from '@typescript/typescript6'
Bun.plugin({
  name: 'typescript 6',
  setup: (build) => build.module('typescript', () => ({ exports: { default: typescript, ...typescript }, loader: 'object' })),
})
const { default: generate, astToString } = await import('openapi-typescript')
process.stdout.write(astToString(await generate(await Bun.stdin.json())))
`

/** @throws Error with the output of the generator if it fails */
export async function generateTypes(document: string): Promise<string> {
  const child = Bun.spawn([process.execPath, '-e', GENERATE], {
    cwd: ROOT,
    stdin: new Blob([document]),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [types, problems, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  if (code !== 0) throw new Error(`the types could not be generated:\n${problems}`)
  return types
}
