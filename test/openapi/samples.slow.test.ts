import { beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { newHostedAgent } from '../support/hosted.ts'
import { startModelServer } from '../support/model-server.ts'
import { runTool } from '../support/processes.ts'
import { python, runPython } from '../support/python.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { temporaryDirectory } from '../support/teardown.ts'
import { type Document, readDocument } from './document.ts'

/** The samples of the reference page, run one after the other beside a service. */

const CLIENT = join(import.meta.dir, '..', '..', 'src', 'client', 'node.ts')

/** Samples in which a client reports a run from its start to its end. */
const REPORTING = 4

let service: TestService
let document: Document
let env: Record<string, string>

beforeAll(async () => {
  const model = startModelServer(() => ({ text: 'Hello!' }))
  service = await startTestService({ OPENAI_BASE_URL: model.url })
  document = await readDocument(service)
  const agent = (await service.api('POST', '/api/v1/agents', { name: 'support' })).data.agent_id
  const { key } = (await service.api('POST', `/api/v1/agents/${agent}/keys`, {})).data
  const start = { agent_id: agent }
  const run = (await service.api('POST', '/api/ingest/v1/run/start', start, { key })).data.run_id
  await service.api(
    'POST',
    '/api/ingest/v1/events',
    { run_id: run, events: [{ type: 'note', level: 'warn' }] },
    { key },
  )
  const hosted = await newHostedAgent(service)
  env = {
    AGENT_RUN_URL: service.url,
    AGENT_RUN_KEY: service.workspaceKey,
    ...{ AGENT: agent, AGENT_KEY: key, RUN: run, HOSTED: hosted.agentId },
  }
})

/** The samples of a language, in the order of the document. */
function samples(label: string): string[] {
  return [...document.operations.values()].flatMap(({ operation }) => {
    const all = (operation as { 'x-codeSamples'?: readonly { label: string; source: string }[] })['x-codeSamples'] ?? []
    return all
      .filter((each) => each.label === label)
      .map(({ source }) => source.replaceAll('http://127.0.0.1:3000', service.url))
  })
}

test('every sample calls the operation that it stands at, in three languages', () => {
  for (const { path, operation } of document.operations.values()) {
    const all = (operation as { 'x-codeSamples'?: readonly { label: string; source: string }[] })['x-codeSamples']
    if (all === undefined) continue
    expect(all.map(({ label }) => label)).toEqual(['curl', 'TypeScript', 'Python'])
    const pattern = path.replaceAll(/\{\w+\}/g, '\\$[A-Z]+')
    expect(all[0]?.source).toMatch(new RegExp(`http://127\\.0\\.0\\.1:3000${pattern}["? ]`))
  }
  expect(samples('curl').length).toBeGreaterThanOrEqual(10)
})

test('the samples for curl succeed', async () => {
  for (const source of samples('curl')) {
    // A feed does not end.
    const isFeed = source.startsWith('curl -N')
    const script = source.replace(/^curl/, `curl --silent --fail-with-body ${isFeed ? '--max-time 1' : ''}`)
    await runTool(['bash', '-c', isFeed ? `${script} || [ $? = 28 ]` : script], '/', { env })
  }
})

test('the samples in TypeScript succeed, and their reports arrive', async () => {
  const directory = await temporaryDirectory()
  const before = await completedRuns()
  for (const [i, source] of samples('TypeScript').entries()) {
    const path = join(directory, `sample-${i}.ts`)
    await Bun.write(path, source.replace(`'agent-run-service-client'`, `'${CLIENT}'`))
    await runTool([process.execPath, path], directory, { env })
  }
  expect(await completedRuns()).toBe(before + REPORTING)
})

test.skipIf(python === null)('the samples in Python succeed', async () => {
  const before = await completedRuns()
  for (const source of samples('Python')) await runPython(source, env)
  expect(await completedRuns()).toBe(before + REPORTING)
})

async function completedRuns(): Promise<number> {
  const { data } = await service.api('GET', `/api/v1/runs?status=completed&agent_id=${env.AGENT}&limit=200`)
  return data.items.length
}
