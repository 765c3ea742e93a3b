import { expect, test } from 'bun:test'
import { cp, readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { compile } from '../support/client-build.ts'
import { runTool } from '../support/processes.ts'
import { startTestService } from '../support/service.ts'
import { temporaryDirectory } from '../support/teardown.ts'
import { CLIENT_TYPES, clientTypes } from './client-types.ts'
import { generateTypes } from './generate-types.ts'

/** A client generated with `openapi-typescript` and `openapi-fetch` compiles under `strict` and works. */

const ROOT = join(import.meta.dir, '..', '..')

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

test('a generated client compiles under strict and runs against the service', async () => {
  const [service, directory] = await Promise.all([startTestService(), temporaryDirectory()])
  await symlink(join(ROOT, 'node_modules'), join(directory, 'node_modules'))
  await cp(join(import.meta.dir, 'client', 'use.ts'), join(directory, 'use.ts'))
  await Bun.write(join(directory, 'tsconfig.json'), JSON.stringify(STRICT))
  const document = await (await fetch(`${service.url}/docs/json`)).text()
  await Bun.write(join(directory, 'api.d.ts'), await generateTypes(document))
  await compile(['-p', '.'], directory)
  const env = { SERVICE_URL: service.url, WORKSPACE_KEY: service.workspaceKey }
  const seen = JSON.parse(await runTool([process.execPath, 'use.ts'], directory, { env }))
  expect(seen).toEqual({
    stored: 2,
    status: 'completed',
    duration: 'number',
    steps: ['warn', 'info'],
    code: 'NOT_FOUND',
  })
})

test('the types of the client library are those of the document', async () => {
  const types = await clientTypes(await startTestService())
  expect((await readFile(CLIENT_TYPES, 'utf8')) === types, 'run `npx --yes bun run client-types`').toBe(true)
})
