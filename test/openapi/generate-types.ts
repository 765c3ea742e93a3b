import { join } from 'node:path'
import { runTool } from '../support/processes.ts'

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
export function generateTypes(document: string): Promise<string> {
  return runTool([process.execPath, '-e', GENERATE], ROOT, { stdin: document })
}
