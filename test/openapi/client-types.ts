import { join } from 'node:path'
import { startTestService, type TestService } from '../support/service.ts'
import { endAll } from '../support/teardown.ts'
import { generateTypes } from './generate-types.ts'

/** The types of the client library. `bun run client-types` writes them; a test checks that they are up to date. */

export const CLIENT_TYPES = join(import.meta.dir, '..', '..', 'src', 'client', 'generated', 'api.ts')

const HEADER = '// Generated from the OpenAPI document by `bun run client-types`.\n\n'

export async function clientTypes({ url }: Pick<TestService, 'url'>): Promise<string> {
  const document = await (await fetch(`${url}/docs/json`)).text()
  return HEADER + (await generateTypes(document))
}

if (import.meta.main) {
  try {
    await Bun.write(CLIENT_TYPES, await clientTypes(await startTestService()))
  } finally {
    await endAll()
  }
  process.exit(0)
}
