import { beforeAll, expect, test } from 'bun:test'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { callTurn, type HostedRig, startHostedRig } from '../support/hosted-rig.ts'
import type { ModelServerRequest } from '../support/model-server.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'

/** The scenarios of `@modelcontextprotocol/conformance` for tasks, with hosted agents in the place of its fixtures. */

const MAIN = join(import.meta.dir, '../../node_modules/@modelcontextprotocol/conformance/dist/index.js')
/** A call that ends sooner is answered without a task. */
const TASK_MS = 2_300
/** Generous, because a busy machine may take many times as long. */
const SCENARIO_MS_MAX = 180_000

/**
 * What is checked, and what fails: no hosted agent needs the extension (`tasks-required-task-error`), none asks before its run
 * starts (`tasks-mrtr-composition`), and only a defect of the service would be an error of the protocol.
 */
const EXPECTED: Readonly<Record<string, readonly string[]>> = {
  'tasks-lifecycle': ['sep-2663-tasks-get-status-failed'],
  'tasks-capability-negotiation': [],
  'tasks-wire-fields': [],
  'tasks-request-state-removal': [],
  'tasks-mrtr-input': [],
  'tasks-request-headers': [],
  'tasks-dispatch-and-envelope': [],
}

let url: string

beforeAll(async () => {
  const rig = await startHostedRig()
  await createFixtures(rig)
  // The scenarios send no key.
  const proxy = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    fetch: async (request) => {
      const headers = new Headers(request.headers)
      headers.set('authorization', `Bearer ${rig.service.workspaceKey}`)
      headers.delete('host')
      return fetch(`${rig.service.url}/mcp`, { method: request.method, headers, body: await request.arrayBuffer() })
    },
  })
  atEnd(() => proxy.stop(true))
  url = `http://127.0.0.1:${proxy.port}/mcp`
})

test.each(Object.entries(EXPECTED))('%s', async (scenario, failing) => {
  const directory = await temporaryDirectory()
  const options = ['--url', url, '--scenario', scenario, '--timeout', String(SCENARIO_MS_MAX), '-o', directory]
  const child = Bun.spawn([process.execPath, MAIN, 'server', ...options], { stdout: 'pipe', stderr: 'pipe' })
  const output = await new Response(child.stdout).text()
  await child.exited
  const file = (await readdir(directory, { recursive: true })).find((name) => name.endsWith('checks.json'))
  if (file === undefined) throw new Error(output)
  const checks: { id: string; status: string; errorMessage?: string }[] = JSON.parse(
    await readFile(join(directory, file), 'utf8'),
  )
  expect(checks.length).toBeGreaterThan(0)
  const failed = checks.filter(({ status }) => status === 'FAILURE')
  expect(
    failed.map(({ id }) => id),
    JSON.stringify(failed, null, 1),
  ).toEqual([...failing])
})

async function createFixtures({ service, tools, agent }: HostedRig): Promise<void> {
  const any = { type: 'object' }
  const fixture = (name: string, turns: Parameters<typeof agent>[1], settings: object = {}) =>
    agent(service, turns, { name, expose: ['mcp'], input_schema: any, ...settings })
  const held = { tools: [tools.tool('confirm', { requires_approval: true })] }
  await fixture('greet', (request) => ({ text: `Hello, ${argumentsOf(request).name}!` }))
  await fixture('slow_compute', (request) => {
    const { seconds } = argumentsOf(request)
    return { text: 'Computed.', delayMs: seconds === 0 ? 0 : Math.max(TASK_MS, seconds * 1_000) }
  })
  await fixture('failing_job', [{ status: 400, delayMs: TASK_MS }])
  await fixture('protocol_error_job', [{ status: 400, delayMs: TASK_MS }])
  await fixture('confirm_delete', [callTurn(['confirm', { n: 1 }]), { text: 'Deleted.' }], held)
  await fixture('multi_input', [callTurn(['confirm', { n: 1 }], ['confirm', { n: 2 }]), { text: 'Done.' }], held)
}

// biome-ignore lint/suspicious/noExplicitAny: the arguments of a scenario.
function argumentsOf({ body }: ModelServerRequest): any {
  return JSON.parse(body.messages.findLast(({ role }) => role === 'user')!.content!)
}
