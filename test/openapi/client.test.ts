import { expect, test } from 'bun:test'
import { cp, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { startTestService } from '../support/service.ts'
import { temporaryDirectory } from '../support/teardown.ts'

/** A client generated with `openapi-typescript` and `openapi-fetch` compiles under `strict` and works. */

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

const STRICT = {
  compilerOptions: {
    target: 'ESNext',
    module: 'Preserve',
    moduleResolution: 'bundler',
    types: ['bun'],
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    noEmit: true,
    skipLibCheck: false,
    allowImportingTsExtensions: true,
  },
  include: ['*.ts'],
}

async function run(command: readonly string[], cwd: string, options: { stdin?: string; env?: object } = {}) {
  const child = Bun.spawn([...command], {
    cwd,
    stdin: new Blob([options.stdin ?? '']),
    stderr: 'pipe',
    env: { ...process.env, ...options.env },
  })
  const [out, problems, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  if (code !== 0) throw new Error(`${command.join(' ')} ended with ${code}:\n${out}\n${problems}`)
  return out
}

test('a generated client compiles under strict and runs against the service', async () => {
  const [service, directory] = await Promise.all([startTestService(), temporaryDirectory()])
  await symlink(join(ROOT, 'node_modules'), join(directory, 'node_modules'))
  await cp(join(import.meta.dir, 'client', 'use.ts'), join(directory, 'use.ts'))
  await Bun.write(join(directory, 'generate.js'), GENERATE)
  await Bun.write(join(directory, 'tsconfig.json'), JSON.stringify(STRICT))
  const document = await (await fetch(`${service.url}/docs/json`)).text()
  const types = await run([process.execPath, 'generate.js'], directory, { stdin: document })
  await Bun.write(join(directory, 'api.d.ts'), types)
  await run([process.execPath, join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', '.'], directory)
  const env = { SERVICE_URL: service.url, WORKSPACE_KEY: service.workspaceKey }
  const seen = JSON.parse(await run([process.execPath, 'use.ts'], directory, { env }))
  expect(seen).toEqual({
    stored: 2,
    status: 'completed',
    duration: 'number',
    steps: ['warn', 'info'],
    code: 'NOT_FOUND',
  })
})
