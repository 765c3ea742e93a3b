import { expect, test } from 'bun:test'
import { cp, readdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { newAgent } from '../support/api.ts'
import { compile } from '../support/client-build.ts'
import { programOf, snippetsOf } from '../support/guides.ts'
import { runTool } from '../support/processes.ts'
import { startTestService } from '../support/service.ts'
import { temporaryDirectory } from '../support/teardown.ts'

/** What `npm pack` makes of the client library works in a plain Node project, and the guides show code that compiles. */

const ROOT = join(import.meta.dir, '..', '..')
const PACKAGE = join(ROOT, 'src', 'client')
const GUIDES = ['docs/client.md', 'src/client/README.md']

const STRICT = {
  compilerOptions: {
    ...{ target: 'ES2022', module: 'NodeNext', lib: ['ES2022', 'DOM'], types: ['node'] },
    ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, skipLibCheck: false },
  },
  include: ['*.ts'],
}

test('the packed package installs offline without dependencies, compiles under strict and works in Node', async () => {
  const [service, project, packed] = await Promise.all([startTestService(), temporaryDirectory(), temporaryDirectory()])
  const { agentId, agentKey } = await newAgent(service.api)
  await runTool(['npm', 'pack', '--pack-destination', packed], PACKAGE)
  const [tarball] = await readdir(packed)
  await Bun.write(join(project, 'package.json'), JSON.stringify({ name: 'project', private: true, type: 'module' }))
  await runTool(['npm', 'install', '--offline', '--no-audit', '--no-fund', join(packed, tarball!)], project)
  const installed = (await readdir(join(project, 'node_modules'))).filter((name) => !name.startsWith('.'))
  expect(installed).toEqual(['agent-run-service-client'])

  await cp(join(import.meta.dir, 'project', 'use.ts'), join(project, 'use.ts'))
  for (const [i, guide] of GUIDES.entries()) await Bun.write(join(project, `guide-${i}.ts`), programOf(guide, 'ts'))
  const first = snippetsOf('docs/client.md').find(({ language }) => language === 'ts')
  await Bun.write(join(project, 'first.ts'), `${first?.text}console.log(result)\n`)
  await Bun.write(join(project, 'tsconfig.json'), JSON.stringify(STRICT))
  await symlink(join(ROOT, 'node_modules', '@types'), join(project, 'node_modules', '@types'))
  await compile(['-p', '.'], project)
  const env = { AGENT_RUN_URL: service.url, AGENT_RUN_KEY: agentKey, AGENT_RUN_AGENT_ID: agentId }
  expect(JSON.parse(await runTool(['node', 'use.js'], project, { env }))).toEqual({
    ...{ result: { answer: 42 }, status: 'completed', acknowledged: 6, dropped: 0, errors: 0 },
  })
  expect(await runTool(['node', 'first.js'], project, { env })).toBe('{ answer: 2 }\n')
  const { items } = (await service.api('GET', '/api/v1/runs?tag=package&include=input,output')).data
  expect(items).toMatchObject([{ status: 'completed', agent_id: agentId, event_count: expect.any(Number) }])
  const events = await service.api('GET', `/api/v1/runs/${items[0].run_id}/events`)
  expect(events.data.items.map(({ type }: { type: string }) => type)).toEqual(['tool.call', 'tool.result'])
})
